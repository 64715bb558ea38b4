use std::io::Write as _;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use curt_testkit::http::Request;
use serde_json::Value;

use super::{printed, stderr};
use crate::api::Api;
use crate::files::{all_files, contents, holds};
use crate::length::{length, time_max};
use crate::site::Site;

/// What the documentation promises, and what the last request may take.
const STOPS_WITHIN: Duration = Duration::from_millis(1_000 + 500);
pub(super) const ANN: &str = "ann@example.com";

/// Runs a command with something on its standard input.
pub(super) fn with_input(site: &Site, arguments: &[&str], input: &str) -> Output {
    let mut child = site
        .app()
        .command()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

pub(super) fn json(site: &Site, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(&site.output(arguments))).unwrap()
}

fn user(site: &Site, email: &str) -> Value {
    let users = json(site, &["user", "list", "--json"]);
    let found = users.as_array().unwrap().iter();
    let mut found = found.filter(|user| user["email"] == email);
    found.next().expect(email).clone()
}

pub(super) fn status(site: &Site, token: &str) -> u16 {
    let mut api = Api::new(site.http(), token);
    api.get("/api/v1/links").unwrap().status
}

/// The tokens of the links to the first account that the server has printed.
fn setup_tokens(site: &Site) -> Vec<String> {
    let logs = site.server().logs();
    let base = format!("http://{}/setup?token=", site.http());
    let tokens = logs
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(&base));
    tokens.map(str::to_owned).collect()
}

fn assert_not_on_disk(site: &Site, secret: &str) {
    for path in all_files(&site.folder().join("data")) {
        let found = holds(&contents(&path), secret.as_bytes());
        assert!(!found, "{secret} is stored in {}", path.display());
    }
}

#[test]
fn users_are_added_changed_and_kept_out_beside_the_server() {
    let site = Site::start(&[]);
    let made = printed(&site.output(&["user", "add", "Ann@Example.com", "--role", "admin"]));
    let password = made.strip_suffix('\n').unwrap();
    assert_eq!(
        password.len(),
        20,
        "the password is alone on standard output"
    );
    let ann = user(&site, ANN);
    assert_eq!(
        (&ann["role"], &ann["first_name"]),
        (&"admin".into(), &"Ann".into())
    );
    assert_eq!(ann["can_sign_in"], true);

    printed(&site.output(&["user", "role", ANN, "member"]));
    printed(&site.output(&["user", "limit", ANN, "--creations", "1000/1h"]));
    let ann = user(&site, ANN);
    assert_eq!(
        (&ann["role"], &ann["creations"]),
        (&"member".into(), &"1000/1h".into())
    );
    printed(&site.output(&["user", "limit", ANN, "--creations", "none"]));
    assert_eq!(user(&site, ANN)["creations"], Value::Null);

    let token = printed(&site.output(&["api-key", "add", "laptop", "--user", ANN]));
    let token = token.trim();
    assert_eq!(status(&site, token), 200);
    printed(&site.output(&["user", "disable", ANN]));
    let disabled = Instant::now();
    while status(&site, token) == 200 {
        assert!(
            disabled.elapsed() < time_max(STOPS_WITHIN),
            "a disabled user goes on"
        );
    }
    let table = printed(&site.output(&["user", "list"]));
    assert!(table.contains(ANN) && table.contains("disabled"), "{table}");
    printed(&site.output(&["user", "enable", ANN]));
    let enabled = Instant::now();
    while status(&site, token) != 200 {
        assert!(
            enabled.elapsed() < time_max(STOPS_WITHIN),
            "an enabled user stays out"
        );
    }
    printed(&site.output(&["user", "sign-out", ANN]));
    assert_eq!(
        json(&site, &["user", "sessions", ANN, "--json"]),
        Value::Array(vec![])
    );
}

#[test]
fn passwords_and_codes_come_in_and_out_but_are_not_stored() {
    let site = Site::prepared(&[]);
    let password = "correct horse battery staple";
    let arguments = ["user", "add", ANN, "--first", "Ann", "--password-stdin"];
    let added = with_input(&site, &arguments, &format!("{password}\n"));
    assert_eq!(printed(&added), "", "a given password is not shown");
    let made = printed(&site.output(&["user", "password", ANN]));
    let address = printed(&site.output(&["user", "invite", "--role", "admin", "--ttl", "1h"]));
    let (page, code) = address.trim().split_once("?invite=").expect(&address);
    assert_eq!((page, code.len()), ("http://127.0.0.1:8080/sign-up", 32));
    for secret in [password, made.trim(), code] {
        assert_not_on_disk(&site, secret);
    }
    let arguments = ["user", "password", ANN, "--password-stdin"];
    let weak = with_input(&site, &arguments, "short\n");
    assert_eq!(weak.status.code(), Some(4));
    assert!(stderr(&weak).contains("at least 8"), "{}", stderr(&weak));
}

#[test]
fn a_password_reset_revokes_api_keys_if_asked_to() {
    let site = Site::start(&[]);
    printed(&site.output(&["user", "add", ANN]));
    let token = printed(&site.output(&["api-key", "add", "laptop", "--user", ANN]));
    let token = token.trim();
    let session = |password: &str| {
        let shown = serde_json::json!({ "email": ANN, "password": password });
        let signed_in = Api::new(site.http(), "").post("/api/v1/sessions", &shown);
        let signed_in = signed_in.unwrap();
        assert_eq!(signed_in.status, 201, "{signed_in:?}");
        signed_in.cookie("curt_session").unwrap().to_owned()
    };
    let asked_by = |session: &str| {
        let me = Request::get("/api/v1/users/me");
        let me = me.header("Cookie", format!("curt_session={session}"));
        Api::new(site.http(), "").send(&me).unwrap().status
    };
    let ended_within = |what: &str, ended: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !ended() {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        }
    };
    let password = printed(&site.output(&["user", "password", ANN]));
    let first = session(password.trim());
    assert_eq!(asked_by(&first), 200);
    let password = printed(&site.output(&["user", "password", ANN]));
    ended_within("a session goes on", &|| asked_by(&first) == 401);
    assert_eq!(status(&site, token), 200, "keys stay unless asked for");
    let second = session(password.trim());
    printed(&site.output(&["user", "password", ANN, "--revoke-api-keys"]));
    ended_within("a session goes on", &|| asked_by(&second) == 401);
    ended_within("a key goes on", &|| status(&site, token) == 401);
}

#[test]
fn account_commands_say_what_is_wrong() {
    let site = Site::prepared(&[]);
    printed(&site.output(&["user", "add", ANN]));
    for (arguments, code, part) in [
        (&["user", "add", "Ann@example.com"][..], 4, "another user"),
        (&["user", "add", "nobody"], 4, "name@example.com"),
        (
            &["user", "role", "nobody@example.com", "admin"],
            3,
            "curt user list",
        ),
        (
            &["user", "disable", "nobody@example.com"],
            3,
            "nobody@example.com",
        ),
        (&["user", "limit", ANN], 4, "--creations"),
        (
            &["api-key", "add", "k", "--user", "nobody@example.com"],
            3,
            "curt user list",
        ),
        (
            &[
                "api-key",
                "add",
                "k",
                "--user",
                ANN,
                "--scopes",
                "read,admin",
            ],
            4,
            "no administrator",
        ),
        (&["api-key", "add", " "], 4, "name"),
        (&["api-key", "rotate", "nosuchkey"], 3, "nosuchkey"),
    ] {
        let failed = site.output(arguments);
        let said = stderr(&failed);
        assert_eq!(failed.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    for arguments in [
        &["user", "role", ANN, "boss"][..],
        &["user", "limit", ANN, "--creations", "many"],
        &["user", "invite", "--ttl", "soon"],
        &["api-key", "add", "k", "--scopes", "write"],
    ] {
        let refused = site.output(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_rotated_key_and_its_successor_work_side_by_side() {
    let site = Site::start(&[]);
    printed(&site.output(&["user", "add", ANN]));
    let scopes = ["--scopes", "read,create", "--creations", "5/1h"];
    let add = [&["api-key", "add", "deploy", "--user", ANN][..], &scopes].concat();
    let old = printed(&site.output(&add)).trim().to_owned();
    let prefix = old.split('_').nth(1).unwrap();
    let new =
        printed(&site.output(&["api-key", "rotate", prefix, "--overlap", length("6s", "2s")]));
    let (new, rotated) = (new.trim(), Instant::now());
    assert_eq!((status(&site, &old), status(&site, new)), (200, 200));
    let keys = json(&site, &["api-key", "list", "--json"]);
    let successor = keys.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&successor["name"], &successor["user"]),
        (&"deploy".into(), &ANN.into())
    );
    assert_eq!(successor["scopes"], serde_json::json!(["read", "create"]));
    assert_eq!(successor["creations"], "5/1h");
    while status(&site, &old) == 200 {
        assert!(rotated.elapsed() < time_max(Duration::from_secs(2) + STOPS_WITHIN));
    }
    assert_eq!(status(&site, new), 200);
}

#[test]
fn the_way_to_the_first_account_is_shown_until_somebody_has_one() {
    let mut site = Site::new(&[]);
    site.restart();
    let first = setup_tokens(&site);
    assert_eq!(first.len(), 1, "{}", site.server().logs());
    assert_not_on_disk(&site, &first[0]);
    let operator = user(&site, "operator@localhost");
    assert_eq!(
        (&operator["role"], &operator["can_sign_in"]),
        (&"admin".into(), &false.into())
    );
    site.kill();
    site.restart();
    let second = setup_tokens(&site);
    assert_eq!(second.len(), 1);
    assert_ne!(first, second, "it is not kept, only recognised");
    for token in [&first[0], &second[0]] {
        let page = format!("/setup?token={token}");
        assert_eq!(site.api().get(&page).unwrap().status, 200);
    }
    site.kill();
    printed(&site.output(&["user", "add", ANN, "--role", "admin"]));
    site.restart();
    assert_eq!(setup_tokens(&site), [""; 0]);
}

#[test]
fn the_audit_log_says_who_did_what() {
    let site = Site::prepared(&[]);
    printed(&site.output(&["user", "add", ANN]));
    let token = printed(&site.output(&["api-key", "add", "laptop", "--user", ANN]));
    let prefix = token.split('_').nth(1).unwrap();
    printed(&site.output(&["user", "disable", ANN]));
    let entries = json(&site, &["audit", "--json"]);
    let shown: Vec<(&str, &str)> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["action"].as_str().unwrap(),
                entry["subject"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("user_disabled", ANN),
        ("api_key_added", prefix),
        ("user_added", ANN),
    ];
    assert_eq!(shown, expected, "newest first");
    let newest = printed(&site.output(&["audit", "--limit", "1"]));
    assert!(
        newest.contains("user_disabled") && !newest.contains("user_added"),
        "{newest}"
    );
}

#[test]
fn a_blocklist_that_cannot_be_read_stops_the_start_and_names_the_line() {
    let site = Site::new(&[]);
    std::fs::write(site.folder().join("blocked"), "evil.example\n/(/\n").unwrap();
    let settings = [
        "--set",
        "links.blocklist=blocked",
        "--set",
        "server.listen=127.0.0.1:0",
        "--set",
        "server.admin_listen=",
    ];
    let failed = site.output(&[&["serve"][..], &settings].concat());
    let said = stderr(&failed);
    assert!(
        !failed.status.success() && said.contains("links.blocklist"),
        "{said}"
    );
    assert!(said.contains("blocked") && said.contains('2'), "{said}");
}
