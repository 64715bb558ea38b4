use std::time::Duration;

use curt_core::limits::{TAG_BYTES_MAX, TAGS_MAX, TITLE_BYTES_MAX};
use curt_core::{Alphabet, KeyRules, RedirectStatus, UnixMillis, UnwantedWords};
use curt_links::{Expiry, LinkError, LinkSettings, NewLink, OwnHost};

use crate::world::*;

fn world() -> World {
    let own = |host: &str| host.parse::<OwnHost>().unwrap();
    World::with(Plan {
        links: LinkSettings {
            own_hosts: vec![
                own("s.example"),
                own("kürzer.example"),
                own("127.0.0.1:8080"),
            ],
            ..LinkSettings::default()
        },
        ..Plan::default()
    })
}

fn aliased(alias: &str) -> NewLink {
    NewLink {
        alias: Some(alias.into()),
        ..new("https://example.com/")
    }
}

/// Targets that must be refused (G1, G2, G4, G5), with the code.
#[rustfmt::skip]
const HOSTILE: &[(&str, &str)] = &[
    // Nothing there.
    ("", "target_empty"),
    ("   ", "target_empty"),
    ("\t\r\n", "target_empty"),
    ("\0", "target_empty"),
    // Not absolute, or no URL at all.
    ("foo", "target_syntax"),
    ("foo/path", "target_syntax"),
    ("1.2", "target_syntax"),
    ("a@example.com", "target_syntax"),
    ("//evil.example", "target_syntax"),
    ("///evil.example", "target_syntax"),
    ("/path", "target_syntax"),
    ("?q=1", "target_syntax"),
    ("#frag", "target_syntax"),
    ("\\\\evil.example", "target_syntax"),
    (".", "target_syntax"),
    ("http", "target_syntax"),
    ("http:", "target_syntax"),
    ("http://", "target_syntax"),
    ("https://", "target_syntax"),
    ("http:///", "target_syntax"),
    ("https://?q", "target_syntax"),
    ("https://#f", "target_syntax"),
    ("http://:80/", "target_syntax"),
    ("http://@/", "target_syntax"),
    ("http://a b/", "target_syntax"),
    ("http://exa mple.com/", "target_syntax"),
    ("http://a%20b/", "target_syntax"),
    ("http://a%00b/", "target_syntax"),
    ("http://a%0d%0ab/", "target_syntax"),
    ("http://a%2fb/", "target_syntax"),
    ("http://a%40b/", "target_syntax"),
    ("http://a%5cb/", "target_syntax"),
    ("http://a<b/", "target_syntax"),
    ("http://a>b/", "target_syntax"),
    ("http://a^b/", "target_syntax"),
    ("http://a|b/", "target_syntax"),
    ("http://[::1/", "target_syntax"),
    ("http://::1/", "target_syntax"),
    ("http://[::1%eth0]/", "target_syntax"),
    ("http://[fe80::1%25eth0]/", "target_syntax"),
    ("http://[::g]/", "target_syntax"),
    ("http://[1:2:3]/", "target_syntax"),
    ("http://[]/", "target_syntax"),
    ("http://256.256.256.256/", "target_syntax"),
    ("http://1.2.3.4.5/", "target_syntax"),
    ("http://0x100000000/", "target_syntax"),
    ("http://4294967296/", "target_syntax"),
    ("http://1.2.3.09/", "target_syntax"),
    ("http://example.com:65536/", "target_syntax"),
    ("http://example.com:-1/", "target_syntax"),
    ("http://example.com:http/", "target_syntax"),
    ("http://example.com:80:80/", "target_syntax"),
    ("http://xn--/", "target_syntax"),
    ("http://xn--a/", "target_syntax"),
    ("http://xn--zzzz-999999999999/", "target_syntax"),
    ("http://\u{ad}/", "target_syntax"),
    ("http://\u{200b}\u{2060}/", "target_syntax"),
    ("http://a\u{fffd}/", "target_syntax"),
    (":foo", "target_syntax"),
    ("1http://example.com/", "target_syntax"),
    ("ht tp://example.com/", "target_syntax"),
    ("http+//example.com", "target_syntax"),
    ("&#104;ttp://example.com/", "target_syntax"),
    ("%68ttp://example.com/", "target_syntax"),
    ("\u{200b}http://example.com/", "target_syntax"),
    ("\u{feff}http://example.com/", "target_syntax"),
    ("ｈttp://example.com/", "target_syntax"),
    // Other schemes, however they are written.
    ("javascript:alert(1)", "target_scheme"),
    ("JavaScript:alert(1)", "target_scheme"),
    ("JAVASCRIPT:alert(1)//http://example.com", "target_scheme"),
    ("javascript://example.com/%0aalert(1)", "target_scheme"),
    ("javascript://http://example.com/", "target_scheme"),
    (" javascript:alert(1)", "target_scheme"),
    ("\u{1}javascript:alert(1)", "target_scheme"),
    ("\njavascript:alert(1)", "target_scheme"),
    ("data:text/html,<script>alert(1)</script>", "target_scheme"),
    ("data:text/html;base64,PHNjcmlwdD4=", "target_scheme"),
    ("DATA:,x", "target_scheme"),
    ("vbscript:msgbox(1)", "target_scheme"),
    ("file:///etc/passwd", "target_scheme"),
    ("FILE://host/share", "target_scheme"),
    ("blob:https://example.com/uuid", "target_scheme"),
    ("about:blank", "target_scheme"),
    ("about:srcdoc", "target_scheme"),
    ("filesystem:https://example.com/x", "target_scheme"),
    ("view-source:https://example.com/", "target_scheme"),
    ("chrome://settings", "target_scheme"),
    ("ws://example.com/", "target_scheme"),
    ("wss://example.com/", "target_scheme"),
    ("ftp://example.com/", "target_scheme"),
    ("gopher://example.com/", "target_scheme"),
    ("ldap://example.com/", "target_scheme"),
    ("dict://example.com:11211/", "target_scheme"),
    ("mailto:a@example.com", "target_scheme"),
    ("tel:+123", "target_scheme"),
    ("sms:+123", "target_scheme"),
    ("intent://scan/#Intent;scheme=zxing;end", "target_scheme"),
    ("market://details?id=x", "target_scheme"),
    ("ms-settings:", "target_scheme"),
    ("jar:http://example.com/!/", "target_scheme"),
    ("feed:https://example.com/", "target_scheme"),
    ("httpx://example.com/", "target_scheme"),
    ("https+x://example.com/", "target_scheme"),
    ("localhost:8080/x", "target_scheme"),
    ("example.com:x/y", "target_scheme"),
    // Control characters inside, which browsers would drop without a word.
    ("java\nscript:alert(1)", "target_control"),
    ("java\tscript:alert(1)", "target_control"),
    ("java\rscript:alert(1)", "target_control"),
    ("java\0script:alert(1)", "target_control"),
    ("ht\ntps://example.com/", "target_control"),
    ("https:\n//example.com/", "target_control"),
    ("https://exam\nple.com/", "target_control"),
    ("https://exam\tple.com/", "target_control"),
    ("https://example.com/\r\nSet-Cookie: a=b", "target_control"),
    ("https://example.com/\nX: y", "target_control"),
    ("https://example.com/\rX: y", "target_control"),
    ("https://example.com/a\0b", "target_control"),
    ("https://example.com/a\u{b}b", "target_control"),
    ("https://example.com/a\u{1b}[31m", "target_control"),
    ("https://example.com/a\u{7f}b", "target_control"),
    ("https://example.com/a\u{85}b", "target_control"),
    // Credentials.
    ("https://bank.example@evil.example/", "target_credentials"),
    ("https://user:password@example.com/", "target_credentials"),
    ("https://user:@example.com/", "target_credentials"),
    ("https://:password@example.com/", "target_credentials"),
    ("https://a@b@example.com/", "target_credentials"),
    ("https://%61@example.com/", "target_credentials"),
    ("https://bank.example%2f@evil.example/", "target_credentials"),
    ("https:bank.example@evil.example", "target_credentials"),
    ("https:/\\bank.example@evil.example", "target_credentials"),
    // Ourselves.
    ("https://s.example/abc", "target_own_host"),
    ("http://s.example", "target_own_host"),
    ("HTTPS://S.EXAMPLE/abc", "target_own_host"),
    ("https://S.eXaMpLe/", "target_own_host"),
    ("https://s.example./abc", "target_own_host"),
    ("https://s.example../abc", "target_own_host"),
    ("https://s.example:443/abc", "target_own_host"),
    ("https://s.example:8443/abc", "target_own_host"),
    ("http://s.example:80/abc", "target_own_host"),
    ("https://%73.example/abc", "target_own_host"),
    ("https://s%2eexample/abc", "target_own_host"),
    ("https://ｓ.example/abc", "target_own_host"),
    ("https://s。example/abc", "target_own_host"),
    ("https://s\u{ad}.example/abc", "target_own_host"),
    ("https:\\\\s.example\\abc", "target_own_host"),
    ("https:s.example", "target_own_host"),
    ("https:///s.example", "target_own_host"),
    ("https://@s.example/", "target_own_host"),
    ("https://kürzer.example/", "target_own_host"),
    ("https://KÜRZER.example/", "target_own_host"),
    ("https://ku\u{308}rzer.example/", "target_own_host"),
    ("https://xn--krzer-kva.example/", "target_own_host"),
    ("https://XN--KRZER-KVA.example./", "target_own_host"),
    ("http://127.0.0.1:8080/abc", "target_own_host"),
    ("http://localhost:8080/abc", "target_own_host"),
    ("http://[::1]:8080/", "target_own_host"),
    ("http://[::ffff:127.0.0.1]:8080/", "target_own_host"),
    ("http://0.0.0.0:8080/", "target_own_host"),
    ("http://127.1:8080/abc", "target_own_host"),
    ("http://0x7f.0.0.1:8080/abc", "target_own_host"),
    ("http://0177.0.0.1:8080/abc", "target_own_host"),
    ("http://2130706433:8080/abc", "target_own_host"),
    ("http://１２７.0.0.1:8080/abc", "target_own_host"),
    ("http://127.0.0.1.:8080/abc", "target_own_host"),
];

/// Targets that must be taken, with the form in which they are kept: what a browser would visit.
#[rustfmt::skip]
const GOOD: &[(&str, &str)] = &[
    ("https://example.com", "https://example.com/"),
    ("  https://example.com/a  ", "https://example.com/a"),
    ("\thttps://example.com/a\r\n", "https://example.com/a"),
    ("HTTPS://EXAMPLE.COM/A", "https://example.com/A"),
    ("http://example.com:80/", "http://example.com/"),
    ("https://example.com:443/", "https://example.com/"),
    ("https://example.com:8443/", "https://example.com:8443/"),
    ("https://example.com/a b", "https://example.com/a%20b"),
    ("https://example.com/ä?ö=ü#ß", "https://example.com/%C3%A4?%C3%B6=%C3%BC#%C3%9F"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ("https://例え.example/", "https://xn--r8jz45g.example/"),
    ("https://example.com/a/../b", "https://example.com/b"),
    ("https://example.com/%2e%2e/b", "https://example.com/b"),
    ("https:\\\\example.com\\a", "https://example.com/a"),
    ("https:example.com", "https://example.com/"),
    ("example.com", "https://example.com/"),
    (" www.example.com/path?q#f ", "https://www.example.com/path?q#f"),
    ("example.com:443/x", "https://example.com/x"),
    ("bücher.example", "https://xn--bcher-kva.example/"),
    ("https:/example.com", "https://example.com/"),
    ("https:////example.com", "https://example.com/"),
    ("https://example.com/%0d%0aX:%20y", "https://example.com/%0d%0aX:%20y"),
    ("https://example.com/?u=https://user:pw@other.example/", "https://example.com/?u=https://user:pw@other.example/"),
    ("https://example.com/@user", "https://example.com/@user"),
    ("https://example.com/#a b", "https://example.com/#a%20b"),
    ("https://example.com/'\"<>`", "https://example.com/'%22%3C%3E%60"),
    ("http://127.0.0.1/", "http://127.0.0.1/"),
    ("http://127.0.0.1:9090/", "http://127.0.0.1:9090/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://[::1]:8081/", "http://[::1]:8081/"),
    ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    ("http://localhost:3000/x", "http://localhost:3000/x"),
    ("https://s.example.com/", "https://s.example.com/"),
    ("https://xs.example/", "https://xs.example/"),
    ("https://example.com./", "https://example.com./"),
    ("https://example.com/?q='; DROP TABLE links; --", "https://example.com/?q=%27;%20DROP%20TABLE%20links;%20--"),
];

#[tokio::test]
async fn hostile_targets_are_refused_g1_g2_g4_g5() {
    assert!(HOSTILE.len() >= 100);
    let world = world();
    for (target, code) in HOSTILE {
        let refused = world.links.create(ANN, new(target), None).await;
        match refused {
            Err(LinkError::Invalid(mistakes)) => {
                let found: Vec<_> = mistakes.iter().map(|m| (m.field.name(), m.code)).collect();
                assert_eq!(found, [("target", *code)], "{target:?}");
            }
            other => panic!("{target:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn good_targets_are_kept_as_a_browser_visits_them() {
    let world = world();
    for (target, kept) in GOOD {
        let created = world.links.create(ANN, new(target), None).await;
        let link = created.unwrap_or_else(|e| panic!("{target:?}: {e}")).link;
        assert_eq!(link.target.as_str(), *kept, "{target:?}");
        // Serialising again changes nothing.
        let again = world.links.create(ANN, new(kept), None).await.unwrap().link;
        assert_eq!(again.target.as_str(), *kept);
    }
}

#[tokio::test]
async fn the_length_counts_after_serialisation() {
    let world = world();
    let base = "https://example.com/";
    let of_length = |length: usize| format!("{base}{}", "a".repeat(length - base.len()));
    let taken = world.links.create(ANN, new(&of_length(2_048)), None).await;
    assert_eq!(taken.unwrap().link.target.as_str().len(), 2_048);
    for long in [
        of_length(2_049),
        of_length(1_000_000),
        format!("{base}{}", "ä".repeat(400)),
    ] {
        let refused = world.links.create(ANN, new(&long), None).await;
        assert_eq!(codes(refused), ["target_too_long"]);
    }
}

#[tokio::test]
async fn other_schemes_can_be_allowed() {
    let world = World::with(Plan {
        links: LinkSettings {
            schemes: vec!["https".into(), "myapp".into()],
            ..LinkSettings::default()
        },
        ..Plan::default()
    });
    let app = world.links.create(ANN, new("myapp://open/ä b"), None).await;
    assert_eq!(app.unwrap().link.target.as_str(), "myapp://open/%C3%A4%20b");
    for (target, code) in [
        ("http://example.com/", "target_scheme"),
        ("myapp:opaque", "target_host"),
        ("myapp:///path", "target_host"),
    ] {
        let refused = world.links.create(ANN, new(target), None).await;
        assert_eq!(codes(refused), [code], "{target}");
    }
}

#[test]
fn own_hosts_are_written_like_hosts() {
    for (text, shown) in [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("example.com:8080", "example.com:8080"),
        ("example.com:80", "example.com:80"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("127.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::1]:8080", "[::1]:8080"),
    ] {
        assert_eq!(text.parse::<OwnHost>().unwrap().to_string(), shown);
    }
    for text in [
        "",
        "https://example.com",
        "a/b",
        "a b",
        "u@h",
        "h:99999",
        "::1",
        "h:x",
    ] {
        assert!(text.parse::<OwnHost>().is_err(), "{text:?}");
    }
}

#[tokio::test]
async fn aliases_are_plain_and_never_a_route_g13() {
    let world = World::new();
    let longest = "x".repeat(64);
    for alias in ["a", "A-b_9", "0", "-", "_", &longest] {
        let link = world
            .links
            .create(ANN, aliased(alias), None)
            .await
            .unwrap()
            .link;
        assert_eq!(link.id.key.as_str(), alias);
    }
    let too_long = "x".repeat(65);
    for (alias, code) in [
        ("", "alias_empty"),
        (&*too_long, "alias_too_long"),
        ("a.b", "alias_symbols"),
        ("..", "alias_symbols"),
        ("a/b", "alias_symbols"),
        ("a b", "alias_symbols"),
        (" a", "alias_symbols"),
        ("a\r\n", "alias_symbols"),
        ("a\0", "alias_symbols"),
        ("ä", "alias_symbols"),
        ("a%2fb", "alias_symbols"),
        ("a+", "alias_symbols"),
        ("ａpi", "alias_symbols"),
        ("api", "alias_reserved"),
        ("API", "alias_reserved"),
        ("Metrics", "alias_reserved"),
        ("login", "alias_reserved"),
    ] {
        let refused = world.links.create(ANN, aliased(alias), None).await;
        assert_eq!(codes(refused), [code], "{alias:?}");
    }
}

#[tokio::test]
async fn aliases_hold_no_unwanted_word() {
    let world = World::with(Plan {
        links: LinkSettings {
            keys: KeyRules::new(Alphabet::Base62, UnwantedWords::new(["rude"]).unwrap()),
            ..LinkSettings::default()
        },
        ..Plan::default()
    });
    for alias in ["rude", "so-RUDE", "ru-d3"] {
        let refused = world.links.create(ANN, aliased(alias), None).await;
        assert_eq!(codes(refused), ["alias_unwanted"], "{alias:?}");
    }
    let created = world.links.create(ANN, aliased("rud"), None).await;
    assert_eq!(created.unwrap().link.id.key.as_str(), "rud");
}

#[tokio::test]
async fn titles_and_tags_are_tidied() {
    let world = World::new();
    let described = NewLink {
        title: Some("  Grüße <b>&\" ' ".into()),
        tags: ["Big Sale", "big-sale", "  Straße\u{a0}42 ", "ÄÖ", "x"]
            .map(String::from)
            .into(),
        ..new("https://example.com/")
    };
    let link = world.links.create(ANN, described, None).await.unwrap().link;
    assert_eq!(link.title.as_deref(), Some("Grüße <b>&\" '"));
    let tags: Vec<&str> = link.tags.iter().map(|tag| &**tag).collect();
    assert_eq!(tags, ["big-sale", "straße-42", "äö", "x"]);

    let empty = NewLink {
        title: Some("  ".into()),
        ..new("https://example.com/")
    };
    let link = world.links.create(ANN, empty, None).await.unwrap().link;
    assert_eq!(link.title, None);
}

#[tokio::test]
async fn titles_and_tags_have_bounds() {
    let world = World::new();
    let titled = |title: String| NewLink {
        title: Some(title),
        ..new("https://example.com/")
    };
    let tagged = |tags: Vec<String>| NewLink {
        tags,
        ..new("https://example.com/")
    };
    let numbered = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
    for good in [
        titled("x".repeat(TITLE_BYTES_MAX)),
        tagged(vec!["x".repeat(TAG_BYTES_MAX)]),
        tagged(numbered(TAGS_MAX)),
        tagged(vec!["same".to_owned(); 500]),
    ] {
        world.links.create(ANN, good, None).await.unwrap();
    }
    for (bad, code) in [
        (titled("x".repeat(TITLE_BYTES_MAX + 1)), "title_too_long"),
        (titled("a\nb".into()), "title_control"),
        (titled("a\u{1b}[31mb".into()), "title_control"),
        (tagged(vec!["x".repeat(TAG_BYTES_MAX + 1)]), "tag_too_long"),
        (tagged(numbered(TAGS_MAX + 1)), "tags_too_many"),
        (tagged(vec!["a,b".into()]), "tag_symbols"),
        (tagged(vec!["a\0".into()]), "tag_symbols"),
        (tagged(vec![" ".into()]), "tag_empty"),
    ] {
        let refused = world.links.create(ANN, bad, None).await;
        assert_eq!(codes(refused), [code]);
    }
}

fn timed(expires_at: Expiry, valid_since: Option<UnixMillis>) -> NewLink {
    NewLink {
        expires_at,
        valid_since,
        ..new("https://example.com/")
    }
}

fn at(millis: i64) -> Expiry {
    Expiry::At(UnixMillis(millis))
}

#[tokio::test]
async fn times_have_an_order_and_an_end_g15() {
    let world = World::new();
    let in_a_day = START.plus(DAY);
    for (expires_at, valid_since, code) in [
        (Expiry::At(START), None, "expiry_past"),
        (at(START.0 - 1), None, "expiry_past"),
        (at(0), None, "expiry_past"),
        (at(-1), None, "expiry_past"),
        (at(i64::MIN), None, "expiry_past"),
        (at(UnixMillis::MAX.0 + 1), None, "expiry_too_late"),
        (at(i64::MAX), None, "expiry_too_late"),
        (Expiry::Never, Some(UnixMillis(-1)), "valid_since_range"),
        (
            Expiry::Never,
            Some(UnixMillis(i64::MIN)),
            "valid_since_range",
        ),
        (
            Expiry::Never,
            Some(UnixMillis(i64::MAX)),
            "valid_since_range",
        ),
        (
            Expiry::At(in_a_day),
            Some(in_a_day),
            "valid_since_after_expiry",
        ),
        (
            Expiry::At(in_a_day),
            Some(in_a_day.plus(DAY)),
            "valid_since_after_expiry",
        ),
    ] {
        let refused = world
            .links
            .create(ANN, timed(expires_at, valid_since), None)
            .await;
        assert_eq!(codes(refused), [code], "{expires_at:?} {valid_since:?}");
    }
}

#[tokio::test]
async fn times_are_kept_and_the_default_runs_from_the_start_g15() {
    let world = World::new();
    let in_a_day = START.plus(DAY);
    for (expires_at, valid_since, kept) in [
        (at(START.0 + 1), None, Some(UnixMillis(START.0 + 1))),
        (Expiry::At(UnixMillis::MAX), None, Some(UnixMillis::MAX)),
        (Expiry::Never, Some(UnixMillis(0)), None),
        (Expiry::Default, None, Some(START.plus(DAY * 730))),
        (
            Expiry::Default,
            Some(in_a_day),
            Some(in_a_day.plus(DAY * 730)),
        ),
        (
            Expiry::Default,
            Some(UnixMillis(0)),
            Some(START.plus(DAY * 730)),
        ),
        (
            Expiry::Default,
            Some(UnixMillis(UnixMillis::MAX.0 - 1)),
            Some(UnixMillis::MAX),
        ),
    ] {
        let created = world
            .links
            .create(ANN, timed(expires_at, valid_since), None)
            .await;
        assert_eq!(
            created.unwrap().link.expires_at,
            kept,
            "{expires_at:?} {valid_since:?}"
        );
    }
}

#[tokio::test]
async fn the_default_expiry_can_be_never_and_other_defaults_set() {
    let world = World::with(Plan {
        links: LinkSettings {
            default_expiry: None,
            default_status: RedirectStatus::TemporaryRedirect,
            default_forward_query: true,
            ..LinkSettings::default()
        },
        ..Plan::default()
    });
    let link = world
        .links
        .create(ANN, new("https://example.com/"), None)
        .await
        .unwrap()
        .link;
    assert_eq!(link.expires_at, None);
    assert_eq!(link.status, RedirectStatus::TemporaryRedirect);
    assert!(link.forward_query);
}

#[tokio::test]
async fn every_mistake_is_named_at_once() {
    let world = World::new();
    let wrong = NewLink {
        target: "javascript:alert(1)".into(),
        alias: Some("api".into()),
        title: Some("a\0".into()),
        tags: vec!["a,b".into(), String::new(), "c,d".into()],
        expires_at: Expiry::At(START.minus(Duration::from_millis(1))),
        valid_since: Some(UnixMillis(-1)),
        ..NewLink::default()
    };
    let refused = world.links.create(ANN, wrong, None).await;
    assert_eq!(
        codes(refused),
        [
            "target_scheme",
            "alias_reserved",
            "title_control",
            "tag_symbols",
            "tag_empty",
            "valid_since_range",
            "expiry_past"
        ]
    );
}
