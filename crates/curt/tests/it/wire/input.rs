//! Input that is understood and refused: by each way to make or change a link, with the field and the reason.

use serde_json::{Value, json};

use super::raw::{RawAnswer, ask, request};
use super::{no_server_errors, problem};
use crate::site::Site;

fn bad_targets() -> Vec<(String, &'static str)> {
    let long = format!("https://example.com/{}", "a".repeat(2_048));
    let encoded_long = format!("https://example.com/{}", "é".repeat(700));
    [
        ("", "target_empty"),
        ("   ", "target_empty"),
        ("no-host-and-no-scheme", "target_syntax"),
        ("/relative", "target_syntax"),
        ("https://", "target_syntax"),
        ("https://exa mple.com/", "target_syntax"),
        ("http://[::1", "target_syntax"),
        ("http://host:99999/", "target_syntax"),
        ("javascript:alert(1)", "target_scheme"),
        ("JaVaScRiPt:alert(1)", "target_scheme"),
        ("data:text/html,<script>", "target_scheme"),
        ("file:///etc/passwd", "target_scheme"),
        ("ftp://example.com/", "target_scheme"),
        ("mailto:me@example.com", "target_scheme"),
        ("https://example.com/a\r\nSet-Cookie: a=b", "target_control"),
        ("https://example.com/a\nb", "target_control"),
        ("https://example.com/\tb", "target_control"),
        ("https://example.com/\u{0}b", "target_control"),
        ("java\tscript:alert(1)", "target_control"),
        ("https://user@example.com/", "target_credentials"),
        ("https://user:secret@example.com/", "target_credentials"),
        ("https://go.example.com/loop", "target_own_host"),
        ("https://GO.example.com./loop", "target_own_host"),
        ("http://go.example.com:443/loop", "target_own_host"),
        ("https://alias.example.net:8443/loop", "target_own_host"),
        (long.as_str(), "target_too_long"),
        (encoded_long.as_str(), "target_too_long"),
    ]
    .map(|(target, code)| (target.to_owned(), code))
    .to_vec()
}

fn bad_aliases() -> Vec<(String, &'static str)> {
    let long = "a".repeat(65);
    [
        ("api", "alias_reserved"),
        ("API", "alias_reserved"),
        ("health", "alias_reserved"),
        ("metrics", "alias_reserved"),
        ("login", "alias_reserved"),
        ("a/b", "alias_symbols"),
        ("a.b", "alias_symbols"),
        ("a b", "alias_symbols"),
        ("a%2fb", "alias_symbols"),
        ("caf\u{e9}", "alias_symbols"),
        ("a\r\nb", "alias_symbols"),
        ("..", "alias_symbols"),
        (long.as_str(), "alias_too_long"),
    ]
    .map(|(alias, code)| (alias.to_owned(), code))
    .to_vec()
}

struct Door {
    site: Site,
    authorization: String,
}

impl Door {
    fn open() -> Self {
        let site = Site::start(&[
            "server.public_url=https://go.example.com",
            "server.own_hosts=alias.example.net",
        ]);
        let authorization = format!("Authorization: Bearer {}\r\n", site.token());
        Self {
            site,
            authorization,
        }
    }

    fn send(&self, method: &str, path: &str, media_type: &str, body: &str) -> RawAnswer {
        let fields = format!("{}Content-Type: {media_type}\r\n", self.authorization);
        ask(self.site.http(), &request(method, path, &fields, body))
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> RawAnswer {
        self.send(method, path, "application/json", &body.to_string())
    }

    fn links(&self) -> usize {
        let page = self.site.api().get("/api/v1/links?limit=200").unwrap();
        page.json()["links"].as_array().unwrap().len()
    }
}

/// A 422 that names `field` with `code`.
fn refused(answer: &RawAnswer, field: &str, code: &str, context: &str) {
    assert_eq!(answer.status, 422, "{context}: {answer}");
    assert_eq!(problem(answer, context), "invalid-input", "{context}");
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    named(&body, field, code, context);
}

fn named(problem: &Value, field: &str, code: &str, context: &str) {
    let errors = problem["errors"].as_array().unwrap();
    let found = errors
        .iter()
        .any(|error| error["field"] == field && error["code"] == code);
    assert!(found, "{context}: no {field}/{code} in {problem}");
}

#[test]
fn bad_targets_and_aliases_are_refused_by_every_way_in() {
    let door = Door::open();
    let kept = door.json(
        "POST",
        "/api/v1/links",
        &json!({ "target": "https://example.com/kept", "alias": "kept" }),
    );
    assert_eq!(kept.status, 201, "{kept}");
    let targets = bad_targets().into_iter().map(|bad| ("target", bad));
    let aliases = bad_aliases().into_iter().map(|bad| ("alias", bad));
    for (field, (value, code)) in targets.chain(aliases) {
        let context = format!("{field} {value:.60?}");
        let mut link = json!({ "target": "https://example.com/" });
        link[field] = json!(value);
        let answer = door.json("POST", "/api/v1/links", &link);
        refused(&answer, field, code, &context);

        let answer = door.json("POST", "/api/v1/links/bulk", &json!({ "links": [link] }));
        assert_eq!(answer.status, 200, "{context}: {answer}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((&body["created"], &body["failed"]), (&json!(0), &json!(1)));
        assert_eq!(body["results"][0]["status"], 422, "{context}");
        named(&body["results"][0]["problem"], field, code, &context);

        original_refuses(&door, field, &value, code, &context);
        if field == "target" {
            let answer = door.json("PATCH", "/api/v1/links/kept", &json!({ "target": value }));
            refused(&answer, field, code, &context);
        }
    }
    assert_eq!(door.links(), 1, "something refused was stored all the same");
    let followed = door.site.api().follow("kept").unwrap();
    assert_eq!(
        followed.header("location"),
        Some("https://example.com/kept")
    );
    no_server_errors(&door.site.metrics());
}

/// The original API: JSON, form and query.
fn original_refuses(door: &Door, field: &str, value: &str, code: &str, context: &str) {
    let name = match field {
        "target" => "original_url",
        _ => "custom_alias",
    };
    // An empty parameter counts as none there.
    let code = match value.is_empty() {
        true => "missing",
        false => code,
    };
    let mut given = json!({ "original_url": "https://example.com/" });
    given[name] = json!(value);
    let path = "/api/v1/createURL";
    refused(&door.json("POST", path, &given), name, code, context);
    let form: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(
            given
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str().unwrap())),
        )
        .finish();
    let answer = door.send("POST", path, "application/x-www-form-urlencoded", &form);
    refused(&answer, name, code, context);
    if form.len() < 8_000 {
        let in_query = request("POST", &format!("{path}?{form}"), &door.authorization, "");
        refused(&ask(door.site.http(), &in_query), name, code, context);
    }
}

#[test]
fn wrong_types_unknown_fields_and_bad_values_name_the_field() {
    let door = Door::open();
    let long_title = json!("t".repeat(513));
    let many_tags: Value = (0..33).map(|tag| format!("t{tag}")).collect();
    for (field, value, code) in [
        ("target", json!(7), "type"),
        ("target", json!(null), "type"),
        ("target", json!(["https://example.com/"]), "type"),
        ("alias", json!(7), "type"),
        ("title", json!({}), "type"),
        ("title", long_title, "title_too_long"),
        ("title", json!("a\u{7}b"), "title_control"),
        ("tags", json!("one"), "type"),
        ("tags", many_tags, "tags_too_many"),
        ("tags", json!([""]), "tag_empty"),
        ("tags", json!(["a,b"]), "tag_symbols"),
        ("tags", json!(["x".repeat(65)]), "tag_too_long"),
        ("expires_at", json!("2001-01-01T00:00:00Z"), "expiry_past"),
        ("expires_at", json!("tomorrow"), "value"),
        ("expires_at", json!(99), "type"),
        ("valid_since", json!("2999-13-01T00:00:00Z"), "value"),
        ("redirect_status", json!(303), "value"),
        ("redirect_status", json!("302"), "type"),
        ("forward_query", json!("yes"), "type"),
        ("nonsense", json!(1), "unknown"),
    ] {
        let context = format!("{field} = {value}");
        let mut link = json!({ "target": "https://example.com/" });
        link[field] = value.clone();
        refused(
            &door.json("POST", "/api/v1/links", &link),
            field,
            code,
            &context,
        );
    }
    let link = json!({ "target": "https://example.com/", "valid_since": "2999-01-01T00:00:00Z",
        "expires_at": "2998-01-01T00:00:00Z" });
    let answer = door.json("POST", "/api/v1/links", &link);
    refused(
        &answer,
        "valid_since",
        "valid_since_after_expiry",
        "times in the wrong order",
    );
    assert_eq!(door.links(), 0, "something refused was stored all the same");
}

#[test]
fn bodies_of_the_wrong_shape_name_the_field() {
    let door = Door::open();
    for (body, field, code) in [
        ("{}", "target", "missing"),
        ("[]", "body", "type"),
        ("null", "body", "type"),
        ("\"https://example.com/\"", "body", "type"),
        (
            "{\"target\":\"https://example.com/\",\"target\":\"https://example.com/2\"}",
            "target",
            "duplicate",
        ),
    ] {
        let answer = door.send("POST", "/api/v1/links", "application/json", body);
        refused(&answer, field, code, body);
    }
    for (body, field, code) in [
        (json!({ "links": [] }), "links", "count"),
        (
            json!({ "links": vec![json!({ "target": "https://example.com/" }); 1_001] }),
            "links",
            "count",
        ),
        (json!({ "links": {} }), "links", "type"),
        (json!({}), "links", "missing"),
    ] {
        let answer = door.json("POST", "/api/v1/links/bulk", &body);
        refused(
            &answer,
            field,
            code,
            &format!("bulk {:.60}", body.to_string()),
        );
    }
    assert_eq!(door.links(), 0, "something refused was stored all the same");
}

#[test]
fn list_queries_are_read_strictly() {
    let door = Door::open();
    let long = "s".repeat(201);
    for (query, field, code) in [
        ("limit=0", "limit", "value"),
        ("limit=201", "limit", "value"),
        ("limit=ten", "limit", "value"),
        ("order=random", "order", "value"),
        ("state=gone", "state", "value"),
        ("created_from=yesterday", "created_from", "time"),
        ("cursor=nonsense", "cursor", "cursor_invalid"),
        ("serach=typo", "serach", "unknown"),
        ("limit=1&limit=2", "limit", "duplicate"),
        (&format!("search={long}"), "search", "length"),
    ] {
        let path = format!("/api/v1/links?{query}");
        let answer = ask(
            door.site.http(),
            &request("GET", &path, &door.authorization, ""),
        );
        refused(&answer, field, code, query);
    }
    // Bytes that are not UTF-8 find nothing and break nothing.
    let answer = ask(
        door.site.http(),
        &request(
            "GET",
            "/api/v1/links?search=%ff%00",
            &door.authorization,
            "",
        ),
    );
    assert!(matches!(answer.status, 200 | 422), "{answer}");
    no_server_errors(&door.site.metrics());
}

/// Without a public address, and with one: a proxy may stand before it, and whoever is on this machine needs none.
#[test]
fn targets_that_lead_to_the_own_listener_are_loops_under_any_name() {
    for settings in [&[][..], &["server.public_url=https://go.example.com"]] {
        let site = Site::start(settings);
        let port = site.http().port();
        let mut api = site.api();
        for host in [
            "localhost",
            "LocalHost.",
            "127.0.0.1",
            "127.1",
            "127.9.9.9",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
        ] {
            let answer = api.create(&format!("http://{host}:{port}/loop")).unwrap();
            assert_eq!(answer.status, 422, "{host}: {answer:?}");
            named(&answer.json(), "target", "target_own_host", host);
            let other = api.create(&format!("http://{host}:9/other")).unwrap();
            assert_eq!(other.status, 201, "another service at {host}: {other:?}");
        }
    }
}
