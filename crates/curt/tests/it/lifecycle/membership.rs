//! How users come and go: invitations and removal.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use curt_testkit::http::Request;

use super::accounts::{ANN, json, status};
use super::{printed, stderr};
use crate::api::{Api, bulk_results};
use crate::length::length;
use crate::site::Site;

#[test]
fn an_invitation_is_an_address_that_works_and_a_closed_server_is_warned_of() {
    let site = Site::start(&["accounts.sign_up=invite"]);
    let public = format!("server.public_url=http://{}", site.http());
    let invite = |set: &[&str]| site.output(&[&["user", "invite", "--set", &public], set].concat());
    let closed = invite(&[]);
    assert!(
        stderr(&closed).contains("accounts.sign_up"),
        "{}",
        stderr(&closed)
    );
    let open = invite(&["--set", "accounts.sign_up=invite"]);
    assert_eq!(stderr(&open), "");
    let address = printed(&open);
    let base = format!("http://{}", site.http());
    let path = address.trim().strip_prefix(&base).expect(&address);
    let page = site.api().get(path).unwrap();
    assert_eq!(page.status, 200, "{}", page.text());
    let code = path.split("invite=").nth(1).unwrap();
    let new = serde_json::json!({
        "first_name": "Bob", "last_name": "", "email": "bob@example.com",
        "password": "correct horse battery", "invite": code,
    });
    let made = Api::new(site.http(), "").post("/api/v1/users", &new);
    assert_eq!(made.unwrap().status, 201);
}

#[test]
fn a_user_is_removed_and_their_links_go_to_another_or_are_deleted() {
    let site = Site::start(&[]);
    let admin = printed(&site.output(&["api-key", "add", "admin"]));
    let url = format!("http://{}", site.http());
    let tokens = ["ann", "bob"].map(|name| site.new_token(name));
    let key = |token: &str, target: &str| {
        let made = Api::new(site.http(), token).create(target).unwrap().json();
        made["key"].as_str().unwrap().to_owned()
    };
    let kept = key(&tokens[0], "https://example.com/kept");
    let follow = |key: &str| site.api().follow(key).unwrap().status;
    assert_eq!(follow(&kept), 302);
    let remove = |arguments: &[&str]| {
        let common = ["--url", &url, "--api-key", admin.trim()];
        site.output(&[&["user", "rm"], arguments, &common].concat())
    };
    let undecided = remove(&[ANN]);
    assert_eq!(undecided.status.code(), Some(4));
    assert!(
        stderr(&undecided).contains("links_to"),
        "{}",
        stderr(&undecided)
    );
    assert_eq!(status(&site, &tokens[0]), 200, "nothing happened");

    printed(&remove(&[ANN, "--links-to", "bob@example.com"]));
    assert_eq!(status(&site, &tokens[0]), 401, "her API keys end");
    let again = remove(&[ANN, "--delete-links"]);
    assert_eq!(again.status.code(), Some(3), "{}", stderr(&again));
    assert_eq!(follow(&kept), 302, "the link goes on");
    let path = format!("/api/v1/links/{kept}");
    let read = Api::new(site.http(), &tokens[1]).get(&path).unwrap();
    assert_eq!(read.status, 200, "it is Bob's now");

    let gone = key(&tokens[1], "https://example.com/gone");
    assert_eq!(follow(&gone), 302);
    printed(&remove(&["bob@example.com", "--delete-links"]));
    assert_eq!((follow(&gone), follow(&kept)), (410, 410));
    let users = json(&site, &["user", "list", "--json"]);
    let emails: Vec<&str> = users
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|user| user["email"].as_str())
        .collect();
    assert!(
        !emails.contains(&ANN) && !emails.contains(&"bob@example.com"),
        "{emails:?}"
    );
    let audit = printed(&site.output(&["audit"]));
    assert!(audit.contains("user_removed"), "{audit}");
    let last = remove(&["operator@localhost"]);
    assert_eq!(last.status.code(), Some(4), "{}", stderr(&last));
}

/// Links of the user who leaves: more than a page, so that the removal takes several transactions.
const LINKS: usize = 600;

/// Somebody with links, of which they had deleted one.
struct Leaver {
    id: String,
    links: HashSet<String>,
    deleted: String,
}

impl Leaver {
    fn settle(site: &Site, name: &str) -> Self {
        let mut api = Api::new(site.http(), &site.new_token(name));
        let targets: Vec<String> = (0..LINKS)
            .map(|number| format!("https://example.com/{name}/{number}"))
            .collect();
        let made = api.bulk(&targets).unwrap();
        let mut links: HashSet<String> = bulk_results(&made).into_iter().collect();
        let deleted = links.iter().next().unwrap().clone();
        links.remove(&deleted);
        assert_eq!(api.delete(&deleted).unwrap().status, 204);
        let me = api.get("/api/v1/users/me").unwrap().json();
        Self {
            id: me["id"].as_str().unwrap().to_owned(),
            links,
            deleted,
        }
    }
}

/// The keys of all links of a user, as an administrator sees them.
fn links_of(admin: &mut Api, user: &str, state: &str) -> HashSet<String> {
    let first = format!("/api/v1/links?owner_id={user}&limit=200{state}");
    let (mut path, mut keys) = (first.clone(), HashSet::new());
    loop {
        let page = admin.get(&path).unwrap();
        assert_eq!(page.status, 200, "{}", page.text());
        let page = page.json();
        let links = page["links"].as_array().unwrap().iter();
        keys.extend(links.map(|link| link["key"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => path = format!("{first}&cursor={next}"),
            None => return keys,
        }
    }
}

/// The first and the last of a user's links: one of them goes with the first step of a removal.
fn ends_of(admin: &mut Api, user: &str) -> [String; 2] {
    ["newest", "oldest"].map(|order| {
        let path = format!("/api/v1/links?owner_id={user}&limit=1&order={order}");
        let page = admin.get(&path).unwrap().json();
        let key = page["links"][0]["key"].as_str();
        key.unwrap_or_default().to_owned()
    })
}

/// Asks for the removal of a user and kills the server as soon as a part of it is done. Returns whether an answer came
/// before.
fn remove_and_kill(site: &mut Site, admin: &str, path: &str, user: &str) -> bool {
    let http = site.http();
    let mut api = Api::new(http, admin);
    let ends = ends_of(&mut api, user);
    thread::scope(|scope| {
        let removing = scope.spawn(move || {
            let request = Request::new("DELETE", path).bearer(admin);
            Api::new(http, "").send(&request)
        });
        while !removing.is_finished() && ends_of(&mut api, user) == ends {}
        site.kill();
        removing.join().unwrap().is_ok()
    })
}

#[test]
fn a_removal_that_kill_9_broke_off_is_finished_by_the_same_request() {
    let mut site = Site::start(&[]);
    let admin = printed(&site.output(&["api-key", "add", "admin"]));
    let admin = admin.trim();
    let heir = Leaver::settle(&site, "heir");
    let mut inherited = heir.links.clone();
    let mut broken_off = 0;
    let begun = Instant::now();
    for round in 0.. {
        let leaver = Leaver::settle(&site, &format!("leaver{round}"));
        let hands_over = round % 2 == 0;
        let path = match hands_over {
            true => format!("/api/v1/users/{}?links_to={}", leaver.id, heir.id),
            false => format!("/api/v1/users/{}?delete_links=true", leaver.id),
        };
        let was_answered = remove_and_kill(&mut site, admin, &path, &leaver.id);
        site.restart();
        let mut api = Api::new(site.http(), admin);
        let left = links_of(&mut api, &leaver.id, "").len();
        broken_off += usize::from((1..leaver.links.len()).contains(&left));
        let again = api
            .send(&Request::new("DELETE", &path).bearer(admin))
            .unwrap();
        let expected = if was_answered {
            &[404][..]
        } else {
            &[204, 404]
        };
        assert!(expected.contains(&again.status), "{}", again.text());

        for state in ["", "&state=deleted"] {
            let orphaned = links_of(&mut api, &leaver.id, state);
            assert!(orphaned.is_empty(), "{path} left {orphaned:?}");
        }
        if hands_over {
            inherited.extend(leaver.links.iter().cloned());
        }
        assert_eq!(links_of(&mut api, &heir.id, ""), inherited, "{path}");
        let (sample, status) = (leaver.links.iter().next().unwrap(), [410, 302]);
        let followed = api.follow(sample).unwrap().status;
        assert_eq!(followed, status[usize::from(hands_over)], "{path}");
        let restore = format!("/api/v1/links/{}/restore", leaver.deleted);
        let restored = api.send(&Request::post(&restore).bearer(admin)).unwrap();
        assert_eq!(restored.status, 404, "{}", restored.text());
        assert_eq!(api.follow(&leaver.deleted).unwrap().status, 410);

        let is_enough = broken_off >= length(1, 3) && round >= length(1, 3);
        if is_enough || begun.elapsed() > Duration::from_secs(90) {
            break;
        }
    }
    assert!(broken_off > 0, "no kill fell into a removal");
}
