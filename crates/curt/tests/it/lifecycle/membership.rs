//! How users come and go: invitations and removal.

use super::accounts::{ANN, json, status};
use super::{printed, stderr};
use crate::api::Api;
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
