//! Wrong inputs to settings, commands, API and pages: each answer names what is wrong and what to do, with the documented
//! exit code or status, and nothing is made or lost.

use curt_testkit::http::Request;
use serde_json::Value;

use crate::api::Api;
use crate::site::Site;

/// A setting, and a part of the answer that says what to do.
type Setting = (&'static str, &'static str);
/// A command in words, its exit code, and parts of the answer.
type Command = (&'static str, i32, &'static [&'static str]);
/// Method, path, body, status, and parts of the answer.
type Asked = (
    &'static str,
    &'static str,
    &'static str,
    u16,
    &'static [&'static str],
);

const SETTINGS: [Setting; 29] = [
    ("server.listen=localhost:8080", "127.0.0.1:8080"),
    ("server.listen=127.0.0.1:99999", "above 65535"),
    ("server.listen=127.0.0.1", "names no port"),
    ("server.admin_listen=127.0.0.1:8080", "choose another port"),
    ("server.public_url=go.example.com", "https://go.example.com"),
    ("server.public_url=https://a/b", "neither path"),
    ("server.workers=many", "whole number"),
    ("server.header_timeout=5", "such as \"5s\""),
    ("server.bodies_max=1MiB", "16MiB"),
    ("server.trusted_proxies=proxy", "10.0.0.0/8"),
    (
        "server.cors_origins=app.example.com",
        "https://app.example.com",
    ),
    (
        "server.cors_origins=https://App.example.com/",
        "write \"https://app.example.com\"",
    ),
    ("server.cors_origins=*,https://a.example", "alone"),
    ("listen=x", "did you mean server.listen?"),
    ("log.level=inof", "info"),
    ("log.format=xml", "text or json"),
    ("links.schemes=mailto", "as http, https and ftp do"),
    ("links.default_status=200", "301, 302, 307 or 308"),
    ("links.blocklist=absent.txt", "\"\" does without"),
    ("clicks.countries=absent.mmdb", "\"\" does without"),
    ("data_dir=/dev/null", "is a file"),
    ("store.links=oracle:x", "sqlite:"),
    (
        "store.links=cassandra://a/l,cassandra://b/l",
        "name one address",
    ),
    ("store.pool=memory:", "redis://"),
    ("keys.length=3", "use 4"),
    ("keys.strategy=guess", "pool"),
    ("accounts.sign_up=maybe", "closed, invite or open"),
    ("limits.misses_per_address=30", "1000/1h"),
    ("purge.every=0s", "greater than zero"),
];

const COMMANDS: [Command; 38] = [
    ("lnk list", 2, &["link"]),
    ("link add", 2, &["<TARGET>"]),
    (
        "link add https://e.example/ --expires soon",
        2,
        &["--expires", "7d", "never"],
    ),
    (
        "link add https://e.example/ --max-clicks few",
        2,
        &["--max-clicks", "any"],
    ),
    (
        "link add https://e.example/ --visibility secret",
        2,
        &["--visibility", "private"],
    ),
    ("link show https://go.example.com/", 2, &["short URL"]),
    ("link list --url ftp://h", 2, &["--url", "https://"]),
    ("stats --by age", 2, &["--by", "country"]),
    ("stats --where age=4", 2, &["--where", "DIMENSION=VALUE"]),
    ("stats --days 0", 2, &["--days", "3650"]),
    ("stats --tz Mars/Olympus", 4, &["--tz", "Europe/Berlin"]),
    (
        "user role ann@example.com boss",
        2,
        &["<ROLE>", "admin or member"],
    ),
    (
        "user limit ann@example.com --creations many",
        2,
        &["--creations", "1000/1h"],
    ),
    (
        "api-key add k --scopes write",
        2,
        &["--scopes", "read, create, manage or admin"],
    ),
    ("api-key rotate k --overlap soon", 2, &["--overlap", "5s"]),
    ("completions tcsh", 2, &["bash"]),
    ("link add foo", 4, &["target", "example.com"]),
    (
        "link add https://e.example/ --alias api",
        4,
        &["alias", "reserved"],
    ),
    ("link add https://e.example/ --alias taken", 4, &["alias"]),
    (
        "link add https://e.example/ --status 200",
        4,
        &["redirect_status", "301"],
    ),
    (
        "link add https://e.example/ --expires 2001-01-01",
        4,
        &["expires_at"],
    ),
    ("link add - --alias x", 4, &["--alias", "each line"]),
    ("link edit taken", 4, &["--target"]),
    (
        "link edit taken --visibility password",
        4,
        &["--password-stdin"],
    ),
    ("link list --limit 5000", 4, &["limit", "200"]),
    ("link list --cursor zzz", 4, &["cursor", "first page"]),
    ("link permit taken nobody@example.com", 4, &["email"]),
    ("user add nobody", 4, &["email", "name@example.com"]),
    ("user limit ann@example.com", 4, &["--creations"]),
    (
        "link show absent",
        3,
        &["no such link", "upper and lower case"],
    ),
    (
        "link forbid taken ann@example.com",
        3,
        &["ann@example.com", "curt link permissions"],
    ),
    (
        "user disable nobody@example.com",
        3,
        &["nobody@example.com", "curt user list"],
    ),
    ("api-key revoke absent", 3, &["absent", "curt api-key list"]),
    ("link list --api-key wrong", 5, &["API key"]),
    ("link disable taken", 5, &["admin"]),
    (
        "link list --url http://127.0.0.1:1",
        6,
        &["127.0.0.1:1", "--url"],
    ),
    (
        "user list --set data_dir=elsewhere",
        78,
        &["data_dir", "elsewhere/curt.db", "--config"],
    ),
    (
        "audit --config absent.toml",
        78,
        &["--config", "absent.toml"],
    ),
];

const REQUESTS: [Asked; 12] = [
    (
        "POST",
        "/api/v1/links",
        r#"{"target":"foo"}"#,
        422,
        &["\"target\"", "https://example.com"],
    ),
    (
        "POST",
        "/api/v1/links",
        r#"{"target":"https://e.example/","alias":"a b"}"#,
        422,
        &["\"alias\""],
    ),
    (
        "POST",
        "/api/v1/links",
        r#"{"target":"https://e.example/","expires_at":"soon"}"#,
        422,
        &["\"expires_at\"", "2030-12-31T23:59:59Z"],
    ),
    (
        "POST",
        "/api/v1/links",
        r#"{"target":"https://e.example/","colour":1}"#,
        422,
        &["\"colour\""],
    ),
    (
        "POST",
        "/api/v1/links",
        r#"{"target":"https://e.example/","password":"x"}"#,
        422,
        &["\"password\"", "visibility"],
    ),
    ("POST", "/api/v1/links", "{", 400, &["line 1"]),
    ("GET", "/api/v1/links?lmit=5", "", 422, &["\"lmit\""]),
    (
        "GET",
        "/api/v1/stats?bucket=year",
        "",
        422,
        &["\"bucket\"", "week or month"],
    ),
    ("GET", "/api/v1/stats/age", "", 404, &["country"]),
    ("POST", "/api/v1/keys", r#"{"name":""}"#, 422, &["\"name\""]),
    (
        "DELETE",
        "/api/v1/users/1?delete_links=true",
        "",
        403,
        &["admin"],
    ),
    ("GET", "/api/v1/users/me/nonsense", "", 404, &["/api"]),
];

/// Pages, as a browser asks for them.
const PAGES: [Asked; 3] = [
    ("GET", "/absent", "", 404, &["no such link"]),
    ("GET", "/setup?token=wrong", "", 404, &["</html>"]),
    ("GET", "/sign-up?invite=wrong", "", 403, &["administrator"]),
];

const _: () = assert!(SETTINGS.len() + COMMANDS.len() + REQUESTS.len() + PAGES.len() >= 60);

/// What an answer lacks.
fn missing(said: &str, parts: &[&str]) -> Vec<String> {
    let parts = parts.iter().filter(|part| !said.contains(**part));
    parts.map(|part| format!("{part:?} is missing")).collect()
}

#[test]
fn wrong_settings_are_named_with_what_to_do_and_leave_nothing_behind() {
    let site = Site::new(&[]);
    let mut wrong = Vec::new();
    for (setting, advice) in SETTINGS {
        let key = setting.split('=').next().unwrap();
        for command in ["serve", "check"] {
            let output = site.output(&[command, "--set", setting]);
            let said = String::from_utf8_lossy(&output.stderr);
            let mut faults = missing(&said, &[key, advice]);
            if output.status.code() != Some(78) {
                faults.push(format!("{}", output.status));
            }
            if said.lines().count() > 2 {
                faults.push("more than the error".to_owned());
            }
            if !faults.is_empty() {
                wrong.push(format!("{command} {setting}: {faults:?}: {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!site.folder().join("data").exists(), "data was made");
}

/// All that could have been made or lost.
fn inventory(site: &Site, admin: &str) -> Vec<Value> {
    let links = Api::new(site.http(), admin)
        .get("/api/v1/links?owner_id=all&limit=200")
        .unwrap();
    assert_eq!(links.status, 200, "{}", links.text());
    let links = links.json();
    assert!(links["links"].is_array(), "{links}");
    let list = |arguments: &[&str]| -> Value {
        let output = site.output(arguments);
        assert!(output.status.success(), "{arguments:?}");
        let mut listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        for row in listed.as_array_mut().into_iter().flatten() {
            // Notes of use are no change.
            row["last_used_at"] = Value::Null;
        }
        listed
    };
    let mut folders: Vec<String> = std::fs::read_dir(site.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with("command-"))
        .collect();
    folders.sort();
    vec![
        links["links"].clone(),
        list(&["user", "list", "--json"]),
        list(&["api-key", "list", "--json"]),
        folders.into(),
    ]
}

#[test]
fn wrong_inputs_are_named_with_what_to_do_and_change_nothing() {
    let site = Site::start(&[]);
    let url = format!("http://{}", site.http());
    let admin = site.app().run(&["api-key", "add", "admin"]).unwrap();
    site.new_token("ann");
    let taken = serde_json::json!({ "target": "https://example.com/", "alias": "taken" });
    assert_eq!(
        site.api().post("/api/v1/links", &taken).unwrap().status,
        201
    );
    let before = inventory(&site, admin.trim());
    let mut wrong = Vec::new();
    for (line, code, parts) in COMMANDS {
        let mut command = site.app().command();
        // By variables, so that a row can name others.
        command
            .env("CURT_URL", &url)
            .env("CURT_API_KEY", site.token());
        command
            .args(line.split(' '))
            .stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let mut faults = missing(&said, parts);
        if output.status.code() != Some(code) {
            faults.push(format!("{} instead of {code}", output.status));
        }
        if !output.stdout.is_empty() {
            faults.push("something on standard output".to_owned());
        }
        if !faults.is_empty() {
            wrong.push(format!("{line}: {faults:?}: {said}"));
        }
    }
    let requests = REQUESTS.iter().map(|asked| (asked, "application/json"));
    let pages = PAGES.iter().map(|asked| (asked, "text/html"));
    for ((method, path, body, status, parts), accept) in requests.chain(pages) {
        let mut request = Request::new(method, path).header("Accept", accept);
        if accept == "application/json" {
            request = request.bearer(site.token());
        }
        if !body.is_empty() {
            request = request.body("application/json", body.as_bytes());
        }
        let answer = Api::new(site.http(), "").send(&request).unwrap();
        let mut faults = missing(&answer.text(), parts);
        if answer.status != *status {
            faults.push(format!("{} instead of {status}", answer.status));
        }
        if !faults.is_empty() {
            wrong.push(format!(
                "{method} {path} {body}: {faults:?}: {}",
                answer.text()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(inventory(&site, admin.trim()), before);
}
