use std::time::{Duration, Instant};

use super::{printed, stderr};
use crate::api::Api;
use crate::length::{length, time_max};
use crate::site::Site;
use crate::wait::eventually;

/// What the documentation promises, and what the last request may take.
const REVOKED_WITHIN: Duration = Duration::from_millis(1_000 + 500);

/// Words that look like an API key.
fn tokens(text: &str) -> Vec<String> {
    let words = text.split_whitespace();
    words
        .filter(|word| word.starts_with("curt_") && word.len() > 40)
        .map(str::to_owned)
        .collect()
}

fn works(site: &Site, token: &str) -> bool {
    let mut api = Api::new(site.http(), token);
    match api.get("/api/v1/links").unwrap().status {
        200 => true,
        401 => false,
        other => panic!("{other}"),
    }
}

#[test]
fn the_first_start_shows_a_key_once_and_only_once() {
    let mut site = Site::new(&[]);
    site.restart();
    let shown = tokens(&site.server().logs());
    let [first] = shown.as_slice() else {
        panic!("{} keys were shown: {}", shown.len(), site.server().logs());
    };
    assert!(works(&site, first));
    assert!(site.terminate().success());
    for _ in 0..2 {
        site.restart();
        assert_eq!(
            tokens(&site.server().logs()),
            [""; 0],
            "a key was shown again"
        );
        assert!(works(&site, first), "the first key must go on working");
        site.kill();
    }
    // The secret itself is nowhere on the disk.
    let secret = first.rsplit('_').next().unwrap();
    for entry in std::fs::read_dir(site.folder().join("data")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "the secret is stored in {}", path.display());
        }
    }
}

#[test]
fn a_key_added_beside_the_server_works_at_once_and_a_revoked_one_stops() {
    let site = Site::start(&[]);
    let printed_key = printed(&site.output(&["api-key", "add", "deploy"]));
    let token = printed_key.strip_suffix('\n').unwrap();
    assert_eq!(
        tokens(token),
        [token],
        "the key is alone on standard output"
    );
    assert!(works(&site, token));

    let listed = printed(&site.output(&["api-key", "list", "--json"]));
    let keys: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let prefix = token.split('_').nth(1).unwrap();
    let mine = keys
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["prefix"] == prefix);
    assert_eq!(mine.unwrap()["name"], "deploy");
    assert!(
        !listed.contains(token.rsplit('_').next().unwrap()),
        "the list shows a secret"
    );
    let table = printed(&site.output(&["api-key", "list"]));
    assert!(
        table.contains("deploy") && table.contains(prefix),
        "{table}"
    );

    printed(&site.output(&["api-key", "revoke", prefix]));
    let revoked = Instant::now();
    while works(&site, token) {
        assert!(
            revoked.elapsed() < time_max(REVOKED_WITHIN),
            "a revoked key goes on working"
        );
    }
    println!(
        "lifecycle: a revoked key stopped after {:?}",
        revoked.elapsed()
    );
    assert!(works(&site, site.token()), "another key stopped as well");

    let wrong = site.output(&["api-key", "revoke", "nosuchkey"]);
    assert!(
        !wrong.status.success() && stderr(&wrong).contains("nosuchkey"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn a_key_stops_when_it_expires() {
    let site = Site::start(&[]);
    let now = jiff::Timestamp::now().as_millisecond();
    let ends = jiff::Timestamp::from_millisecond(now + length(6_000, 2_000)).unwrap();
    let arguments = ["api-key", "add", "guest", "--expires", &ends.to_string()];
    let token = printed(&site.output(&arguments)).trim().to_owned();
    assert!(works(&site, &token));
    let asked = Instant::now();
    while works(&site, &token) {
        assert!(asked.elapsed() < time_max(Duration::from_secs(2) + REVOKED_WITHIN));
    }
    assert!(
        jiff::Timestamp::now() >= ends,
        "the key ended before its time"
    );
}

#[test]
fn owners_see_and_change_only_their_own_links() {
    let site = Site::start(&[]);
    let mut mine = site.api();
    let mut theirs = Api::new(site.http(), &site.new_token("somebody-else"));
    let key = mine.create("https://example.com/mine").unwrap().json()["key"].clone();
    let key = key.as_str().unwrap();
    assert_eq!(
        theirs.get(&format!("/api/v1/links/{key}")).unwrap().status,
        404
    );
    assert_eq!(theirs.delete(key).unwrap().status, 404);
    let change = serde_json::json!({ "target": "https://example.com/theirs" });
    assert_eq!(theirs.edit(key, &change).unwrap().status, 404);
    let listed = theirs.get("/api/v1/links").unwrap().json();
    assert_eq!(listed["links"].as_array().unwrap().len(), 0);
    // A second key of the same owner is as good as the first.
    let again = site.new_token("tests");
    let mut again = Api::new(site.http(), &again);
    assert_eq!(
        again.get(&format!("/api/v1/links/{key}")).unwrap().status,
        200
    );
    let followed = mine.follow(key).unwrap();
    assert_eq!(
        followed.header("location"),
        Some("https://example.com/mine")
    );
}

#[test]
fn a_key_revoked_by_command_takes_along_what_was_made_with_it() {
    let site = Site::start(&["accounts.disabled_links=gone"]);
    let mut api = site.api();
    let link = api.create("https://example.com/").unwrap().json();
    let link = link["key"].as_str().unwrap().to_owned();
    let mint = |token: &str| {
        let body = serde_json::json!({ "name": format!("{:x}", rand::random::<u64>()) });
        let made = Api::new(site.http(), token).post("/api/v1/keys", &body);
        let made = made.unwrap().json();
        made["token"].as_str().unwrap().to_owned()
    };
    let parent = site.new_token("tests");
    let child = mint(&parent);
    let grandchild = mint(&child);
    let prefix_of = |token: &str| token.split('_').nth(1).unwrap().to_owned();
    let listed = printed(&site.output(&["api-key", "list", "--json"]));
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    for (token, made_with) in [(&child, &parent), (&grandchild, &child)] {
        let prefix = prefix_of(token);
        let found = listed.iter().find(|key| key["prefix"] == prefix.as_str());
        assert_eq!(found.unwrap()["parent"], prefix_of(made_with).as_str());
    }
    let arguments = ["api-key", "revoke", &prefix_of(&parent)];
    printed(&site.output(&arguments));
    for token in [&parent, &child, &grandchild] {
        eventually(Duration::from_secs(10), || match works(&site, token) {
            true => Err("still works"),
            false => Ok(()),
        });
    }
    assert!(works(&site, site.token()));

    // A reset of the password ends the rest when it is asked to, and the links of a disabled user end with them.
    let email = "tests@example.com";
    assert_eq!(api.follow(&link).unwrap().status, 302);
    let arguments = ["user", "password", email, "--revoke-api-keys"];
    printed(&site.output(&arguments));
    eventually(Duration::from_secs(10), || {
        match works(&site, site.token()) {
            true => Err("still works"),
            false => Ok(()),
        }
    });
    assert_eq!(api.follow(&link).unwrap().status, 302);
    for (command, status) in [("disable", 410), ("enable", 302)] {
        printed(&site.output(&["user", command, email]));
        eventually(Duration::from_secs(10), || {
            match api.follow(&link).unwrap().status {
                seen if seen == status => Ok(()),
                seen => Err(format!("{command}: {seen}")),
            }
        });
    }
}
