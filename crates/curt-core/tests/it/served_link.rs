use curt_core::served_link::InvalidServedLink;
use curt_core::{
    ApiKeyNumber, DomainId, Link, LinkRef, LinkState, OwnerId, PackedTags, RedirectStatus,
    Revision, ServedLink, Target, UnixMillis, Visibility,
};
use curt_testkit::fuzz::Fuzz;
use curt_testkit::sample::{NOW, full_link, key, link};

const LATER: UnixMillis = UnixMillis(NOW.0 + 1);

/// Links with every kind of part, at both ends of its range.
fn links() -> Vec<Link> {
    let mut links = vec![link("a"), full_link("b")];
    let largest = u32::MAX;
    for name in ["1234567", &"x".repeat(64)] {
        for (expires_at, valid_since) in [
            (None, None),
            (Some(UnixMillis::MAX), None),
            (Some(LATER), Some(UnixMillis(5))),
            (None, Some(LATER)),
            (Some(UnixMillis::MAX), Some(LATER)),
        ] {
            links.push(Link {
                id: curt_core::LinkId::new(DomainId(7), key(name)),
                expires_at,
                valid_since,
                ..link(name)
            });
        }
    }
    for owner in [0, 1, 127, 128, u64::MAX].map(OwnerId) {
        for tags in [&[][..], &["a"], &["Red", "red", "größe"], &["x"; 32]] {
            links.push(Link {
                owner,
                made_with: Some(ApiKeyNumber(largest)),
                revision: Revision {
                    generation: largest,
                    version: largest,
                },
                tags: tags.iter().map(|tag| (*tag).into()).collect(),
                ..link("tagged")
            });
        }
    }
    let states = LinkState::ALL;
    let visibilities = [Visibility::Private, Visibility::Password];
    links.extend(states.map(|state| Link {
        state,
        max_clicks: Some(0),
        ..link("state")
    }));
    links.extend(visibilities.map(|visibility| Link {
        visibility,
        ..link("guarded")
    }));
    links.extend(RedirectStatus::ALL.map(|status| Link {
        status,
        forward_query: true,
        ..link("status")
    }));
    links
}

#[test]
fn a_served_link_says_what_the_link_says() {
    for link in links() {
        let served = ServedLink::new(&link, NOW);
        assert!(served.is_of(link.id.as_ref()));
        assert_eq!(served.id().as_ref(), Some(&link.id));
        assert_eq!(served.location(), link.target.as_str());
        assert_eq!(served.status(), link.status);
        assert_eq!(served.forward_query(), link.forward_query);
        assert_eq!(served.revision(), link.revision);
        let state = match link.state.is_deleted() {
            true => LinkState::Tombstone,
            false => link.state,
        };
        assert_eq!(served.state(), state);
        assert_eq!(served.visibility(), link.visibility);
        assert_eq!(served.has_limited_clicks(), link.max_clicks.is_some());
        assert_eq!(served.made_with(), link.made_with);
        let (generation, attribution) = served.attribution();
        assert_eq!(generation, link.revision.generation);
        assert_eq!(attribution.owner, link.owner);
        let tags: Vec<Box<str>> = attribution.tags.iter().map(Into::into).collect();
        assert_eq!(tags, link.tags);
        assert_eq!(served.expires_at(), link.expires_at);
        assert_eq!(served.loaded_at(), NOW);
        for now in [NOW, LATER, UnixMillis::MAX, UnixMillis(i64::MAX - 1)] {
            assert_eq!(served.availability(now), link.availability(now), "{now}");
        }
        let read = ServedLink::from_bytes(served.as_bytes()).unwrap();
        assert_eq!(read, served);
    }
}

#[test]
fn neither_password_nor_title_is_in_it() {
    let link = full_link("a");
    let served = ServedLink::new(&link, NOW);
    for secret in [link.password_hash, link.title] {
        let secret = secret.unwrap();
        let mut parts = served.as_bytes().windows(secret.len());
        assert!(parts.all(|part| part != secret.as_bytes()), "{secret}");
    }
}

#[test]
fn a_served_link_is_only_of_its_own_link() {
    let served = ServedLink::new(&link("abc"), NOW);
    let domain = DomainId::DEFAULT;
    for key in ["ab", "abcd", "ABC", "abd", ""] {
        assert!(!served.is_of(LinkRef { domain, key }), "{key}");
    }
    let domain = DomainId(8);
    assert!(!served.is_of(LinkRef { domain, key: "abc" }));
}

#[test]
fn the_fixed_part_is_small() {
    let link = Link {
        // As users are numbered in 2026: 63 bits at most.
        owner: OwnerId(1 << 60),
        ..link("1234567")
    };
    let served = ServedLink::new(&link, NOW);
    let length = 30 + 7 + link.target.as_str().len();
    assert_eq!(served.as_bytes().len(), length);
}

#[test]
fn other_versions_are_refused() {
    let mut bytes = ServedLink::new(&link("a"), NOW).as_bytes().to_vec();
    for version in [0, 2, u8::MAX] {
        bytes[0] = version;
        assert_eq!(ServedLink::from_bytes(&bytes), Err(InvalidServedLink));
    }
}

/// Whatever is accepted is a link that could have been written, byte for byte.
#[test]
fn mutated_served_links_are_refused_or_exact() {
    let samples: Vec<ServedLink> = links().iter().map(|l| ServedLink::new(l, NOW)).collect();
    let words: [&[u8]; 5] = [
        b"\x80\x00",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80\x80\x80\x80\x10",
        b"\x01a\x02\x00",
        b"\xff\xff\xff\xff\xff\xff",
    ];
    Fuzz::new("served link", samples.iter().map(ServedLink::as_bytes))
        .with_words(words)
        .run(|input| {
            let Ok(served) = ServedLink::from_bytes(input) else {
                return false;
            };
            let again = ServedLink::new(&rebuild(&served).unwrap(), served.loaded_at());
            assert_eq!(again.as_bytes(), input);
            true
        });
}

fn rebuild(served: &ServedLink) -> Option<Link> {
    let (_, attribution) = served.attribution();
    let tags = PackedTags::from_bytes(attribution.tags.as_bytes()).ok()?;
    Some(Link {
        id: served.id()?,
        target: Target::from_serialised(served.location()).ok()?,
        owner: attribution.owner,
        made_with: served.made_with(),
        state: served.state(),
        revision: served.revision(),
        expires_at: served.expires_at(),
        valid_since: served.valid_since(),
        max_clicks: served.has_limited_clicks().then_some(1),
        visibility: served.visibility(),
        status: served.status(),
        forward_query: served.forward_query(),
        tags: tags.iter().map(Into::into).collect(),
        ..link("a")
    })
}
