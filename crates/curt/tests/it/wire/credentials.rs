//! Every endpoint × every method × (no, bad, foreign, good) credentials.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::raw::{RawAnswer, ask, request};
use super::{no_server_errors, problem};
use crate::site::Site;

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
];

const JSON: &str = "Content-Type: application/json\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const LINK: &str = "{\"target\":\"https://example.com/made\"}";
const LINKS: &str = "{\"links\":[{\"target\":\"https://example.com/made\"}]}";
const ORIGINAL: &str = "{\"original_url\":\"https://example.com/made\"}";

const NOBODY: &str = "{\"email\":\"nobody@example.com\"}";
const PERSON: &str = "{\"first_name\":\"A\",\"last_name\":\"B\",\"email\":\"a@example.com\",\"password\":\"long enough\"}";
const PASSWORDS: &str = "{\"old_password\":\"a guess\",\"new_password\":\"long enough\"}";
const SIGN_IN: &str = "{\"email\":\"nobody@example.com\",\"password\":\"a guess\"}";
/// Both good keys here are members'.
const FOR_ADMINISTRATORS: [u16; 4] = [401, 401, 403, 403];

/// `KEY` in a path stands for a link of the good credentials, made afresh for every request.
struct Route {
    path: &'static str,
    /// Under this name the OpenAPI document describes it.
    template: &'static str,
    methods: &'static [Method],
}

struct Method {
    name: &'static str,
    fields: &'static str,
    body: &'static str,
    /// With no, bad, foreign and good credentials.
    statuses: [u16; 4],
}

const fn method(name: &'static str, statuses: [u16; 4]) -> Method {
    Method {
        name,
        fields: "",
        body: "",
        statuses,
    }
}

const fn with_body(
    name: &'static str,
    fields: &'static str,
    body: &'static str,
    statuses: [u16; 4],
) -> Method {
    Method {
        name,
        fields,
        body,
        statuses,
    }
}

const READ: &[Method] = &[method("GET", [200; 4]), method("HEAD", [200; 4])];
const FOLLOW: &[Method] = &[
    method("GET", [302; 4]),
    method("HEAD", [302; 4]),
    // Only for links that have a password, or a status that keeps the method.
    method("POST", [405; 4]),
    method("PUT", [405; 4]),
    method("PATCH", [405; 4]),
    method("DELETE", [405; 4]),
    method("OPTIONS", [405; 4]),
];

const TO_SIGN_IN: &[Method] = &[with_body("POST", FORM, "x=y", [303; 4])];

const fn page(path: &'static str) -> Route {
    Route {
        path,
        template: path,
        methods: READ,
    }
}

/// A report: of one link, for its owner; of all links of whoever asks; and of clicks without a link, for administrators.
const OF_LINK: &[Method] = &[
    method("GET", [401, 401, 404, 200]),
    method("HEAD", [401, 401, 404, 200]),
];
const OF_LINKS: &[Method] = &[
    method("GET", [401, 401, 200, 200]),
    method("HEAD", [401, 401, 200, 200]),
];
const OF_ORPHANS: &[Method] = &[
    method("GET", FOR_ADMINISTRATORS),
    method("HEAD", FOR_ADMINISTRATORS),
];

const fn report(path: &'static str, template: &'static str, methods: &'static [Method]) -> Route {
    Route {
        path,
        template,
        methods,
    }
}

/// A page that answers everybody with this: nobody here is signed in.
const fn page_with_form(path: &'static str, methods: &'static [Method]) -> Route {
    Route {
        path,
        template: path,
        methods,
    }
}

const REPORTS: &[Route] = &[
    report("/api/v1/links.csv", "/api/v1/links.csv", OF_LINKS),
    report("/api/v1/tags", "/api/v1/tags", OF_LINKS),
    report("/api/v1/links/KEY/qr", "/api/v1/links/{key}/qr", OF_LINK),
    report("/api/v1/system", "/api/v1/system", OF_ORPHANS),
    report("/api/v1/limits", "/api/v1/limits", OF_ORPHANS),
    report("/api/v1/blocklist", "/api/v1/blocklist", OF_ORPHANS),
    report("/api/v1/plan", "/api/v1/plan", OF_ORPHANS),
    Route {
        path: "/api/v1/tags/none",
        template: "/api/v1/tags/{tag}",
        methods: &[
            with_body("PATCH", JSON, r#"{"name":"other"}"#, [401, 401, 200, 200]),
            method("DELETE", [401, 401, 200, 200]),
        ],
    },
    report(
        "/api/v1/links/KEY/stats",
        "/api/v1/links/{key}/stats",
        OF_LINK,
    ),
    report(
        "/api/v1/links/KEY/stats.csv",
        "/api/v1/links/{key}/stats.csv",
        OF_LINK,
    ),
    report(
        "/api/v1/links/KEY/stats/country",
        "/api/v1/links/{key}/stats/{dimension}",
        OF_LINK,
    ),
    Route {
        path: "/api/v1/links/KEY/clicks",
        template: "/api/v1/links/{key}/clicks",
        methods: &[
            method("GET", [401, 401, 404, 200]),
            method("HEAD", [401, 401, 404, 200]),
            method("DELETE", [401, 401, 404, 200]),
        ],
    },
    report(
        "/api/v1/links/KEY/clicks.csv",
        "/api/v1/links/{key}/clicks.csv",
        OF_LINK,
    ),
    report(
        "/api/v1/links/KEY/live?seconds=0",
        "/api/v1/links/{key}/live",
        OF_LINK,
    ),
    report("/api/v1/stats", "/api/v1/stats", OF_LINKS),
    report("/api/v1/stats.csv", "/api/v1/stats.csv", OF_LINKS),
    report(
        "/api/v1/stats/country",
        "/api/v1/stats/{dimension}",
        OF_LINKS,
    ),
    report("/api/v1/clicks", "/api/v1/clicks", OF_LINKS),
    report("/api/v1/clicks.csv", "/api/v1/clicks.csv", OF_LINKS),
    report("/api/v1/live?seconds=0", "/api/v1/live", OF_LINKS),
    report("/api/v1/orphans", "/api/v1/orphans", OF_ORPHANS),
    report(
        "/api/v1/orphans/key",
        "/api/v1/orphans/{dimension}",
        OF_ORPHANS,
    ),
    report(
        "/api/v1/orphans/clicks",
        "/api/v1/orphans/clicks",
        OF_ORPHANS,
    ),
];

const ROUTES: &[Route] = &[
    Route {
        path: "/api/v1/links",
        template: "/api/v1/links",
        methods: &[
            method("GET", [401, 401, 200, 200]),
            method("HEAD", [401, 401, 200, 200]),
            with_body("POST", JSON, LINK, [401, 401, 201, 201]),
        ],
    },
    Route {
        path: "/api/v1/links/bulk",
        template: "/api/v1/links/bulk",
        methods: &[
            with_body(
                "PATCH",
                JSON,
                r#"{"keys":["nope"],"change":"delete"}"#,
                [401, 401, 200, 200],
            ),
            with_body("POST", JSON, LINKS, [401, 401, 200, 200]),
        ],
    },
    Route {
        path: "/api/v1/links/KEY",
        template: "/api/v1/links/{key}",
        methods: &[
            method("GET", [401, 401, 404, 200]),
            method("HEAD", [401, 401, 404, 200]),
            with_body("PATCH", JSON, LINK, [401, 401, 404, 200]),
            method("DELETE", [401, 401, 404, 204]),
        ],
    },
    Route {
        path: "/api/v1/links/KEY/disable",
        template: "/api/v1/links/{key}/disable",
        methods: &[method("POST", FOR_ADMINISTRATORS)],
    },
    Route {
        path: "/api/v1/links/KEY/enable",
        template: "/api/v1/links/{key}/enable",
        methods: &[method("POST", FOR_ADMINISTRATORS)],
    },
    Route {
        path: "/api/v1/links/KEY/restore",
        template: "/api/v1/links/{key}/restore",
        methods: &[method("POST", [401, 401, 404, 200])],
    },
    Route {
        path: "/api/v1/links/KEY/permissions",
        template: "/api/v1/links/{key}/permissions",
        methods: &[
            method("GET", [401, 401, 404, 200]),
            method("HEAD", [401, 401, 404, 200]),
            with_body("POST", JSON, NOBODY, [401, 401, 404, 422]),
        ],
    },
    Route {
        path: "/api/v1/links/KEY/permissions/1",
        template: "/api/v1/links/{key}/permissions/{id}",
        methods: &[method("DELETE", [401, 401, 404, 404])],
    },
    Route {
        path: "/api/v1/users",
        template: "/api/v1/users",
        methods: &[
            method("GET", FOR_ADMINISTRATORS),
            method("HEAD", FOR_ADMINISTRATORS),
            // Signing up is closed.
            with_body("POST", JSON, PERSON, [403, 401, 403, 403]),
        ],
    },
    Route {
        path: "/api/v1/users/me",
        template: "/api/v1/users/{id}",
        methods: &[
            method("GET", [401, 401, 200, 200]),
            method("HEAD", [401, 401, 200, 200]),
            with_body("PATCH", JSON, "{\"last_name\":\"x\"}", [401, 401, 200, 200]),
            method("DELETE", FOR_ADMINISTRATORS),
        ],
    },
    Route {
        path: "/api/v1/users/me/password",
        template: "/api/v1/users/{id}/password",
        methods: &[with_body("POST", JSON, PASSWORDS, [401; 4])],
    },
    Route {
        path: "/api/v1/invites",
        template: "/api/v1/invites",
        methods: &[
            method("GET", FOR_ADMINISTRATORS),
            method("HEAD", FOR_ADMINISTRATORS),
            with_body("POST", JSON, "{}", FOR_ADMINISTRATORS),
        ],
    },
    Route {
        path: "/api/v1/invites/none",
        template: "/api/v1/invites/{code}",
        methods: &[method("DELETE", FOR_ADMINISTRATORS)],
    },
    Route {
        path: "/api/v1/audit",
        template: "/api/v1/audit",
        methods: &[
            method("GET", FOR_ADMINISTRATORS),
            method("HEAD", FOR_ADMINISTRATORS),
        ],
    },
    Route {
        path: "/api/v1/sessions",
        template: "/api/v1/sessions",
        methods: &[
            method("GET", [401, 401, 200, 200]),
            method("HEAD", [401, 401, 200, 200]),
            with_body("POST", JSON, SIGN_IN, [401; 4]),
        ],
    },
    Route {
        path: "/api/v1/sessions/current",
        template: "/api/v1/sessions/{id}",
        methods: &[method("DELETE", [401, 401, 404, 404])],
    },
    Route {
        path: "/api/v1/keys",
        template: "/api/v1/keys",
        methods: &[
            method("GET", [401, 401, 200, 200]),
            method("HEAD", [401, 401, 200, 200]),
            with_body("POST", JSON, "{\"name\":\"another\"}", [401, 401, 201, 201]),
        ],
    },
    Route {
        path: "/api/v1/keys/aaaaaaaa",
        template: "/api/v1/keys/{prefix}",
        methods: &[method("DELETE", [401, 401, 404, 404])],
    },
    Route {
        path: "/api/v1/keys/aaaaaaaa/rotate",
        template: "/api/v1/keys/{prefix}/rotate",
        methods: &[method("POST", [401, 401, 404, 404])],
    },
    Route {
        path: "/api/v1/createURL",
        template: "/api/v1/createURL",
        methods: &[with_body("POST", JSON, ORIGINAL, [401, 401, 200, 200])],
    },
    Route {
        path: "/api/v1/deleteURL?url_key=KEY",
        template: "/api/v1/deleteURL",
        methods: &[method("DELETE", [401, 401, 404, 200])],
    },
    Route {
        path: "/KEY",
        template: "/{key}",
        methods: FOLLOW,
    },
    Route {
        path: "/KEY/",
        template: "/{key}/",
        methods: FOLLOW,
    },
    Route {
        path: "/",
        template: "/",
        methods: &[
            method("GET", [200; 4]),
            method("HEAD", [200; 4]),
            with_body(
                "POST",
                FORM,
                "target=https%3A%2F%2Fexample.com%2Fmade",
                [401, 401, 201, 201],
            ),
        ],
    },
    page_with_form(
        "/sign-in",
        &[
            method("GET", [200; 4]),
            method("HEAD", [200; 4]),
            with_body("POST", FORM, "email=a%40b.c&password=x", [401; 4]),
        ],
    ),
    page_with_form(
        "/sign-up",
        &[
            method("GET", [403; 4]),
            method("HEAD", [403; 4]),
            with_body("POST", FORM, "email=a%40b.c&password=x", [403; 4]),
        ],
    ),
    page_with_form(
        "/setup",
        &[
            method("GET", [404; 4]),
            method("HEAD", [404; 4]),
            with_body("POST", FORM, "token=x", [404; 4]),
        ],
    ),
    page_with_form(
        "/account",
        &[
            method("GET", [303; 4]),
            method("HEAD", [303; 4]),
            with_body("POST", FORM, "first_name=x", [303; 4]),
        ],
    ),
    page_with_form("/sign-out", TO_SIGN_IN),
    page_with_form("/account/password", TO_SIGN_IN),
    page_with_form("/account/sessions/end", TO_SIGN_IN),
    page_with_form("/account/keys", TO_SIGN_IN),
    page_with_form("/account/keys/rotate", TO_SIGN_IN),
    page_with_form("/account/keys/revoke", TO_SIGN_IN),
    page("/health/live"),
    page("/health/ready"),
    page("/health/create"),
    page("/api"),
    page("/api/operations/createLink"),
    page("/api/v1"),
    page("/api/openapi.json"),
    page("/problems"),
    page("/problems/alias-taken"),
    page("/robots.txt"),
    page("/favicon.ico"),
];

const NOWHERE: [&str; 6] = [
    "/api/v1/nothing",
    "/api/v2/links",
    "/no/such/page",
    "/assets/nothing.css",
    "/problems/nothing",
    "/metrics",
];

struct Desk {
    site: Site,
    foreign: String,
    document: Value,
    codes: HashSet<String>,
}

impl Desk {
    fn open() -> Self {
        // More is tried here than anybody may who guesses.
        let site = Site::start(&["limits.sign_ins_per_address="]);
        let foreign = site.new_token("somebody-else");
        let document = site.api().get("/api/openapi.json").unwrap().json();
        Self {
            site,
            foreign,
            document,
            codes: HashSet::new(),
        }
    }

    /// The header line of each kind of credentials.
    fn credentials(&self) -> [(&'static str, String); 4] {
        let line = |token: &str| format!("Authorization: Bearer {token}\r\n");
        let token = self.site.token();
        let (prefix, _) = token.rsplit_once('_').unwrap();
        let wrong = format!("{prefix}_{}", "x".repeat(32));
        [
            ("no", String::new()),
            ("bad", line(&wrong)),
            ("foreign", line(&self.foreign)),
            ("good", line(token)),
        ]
    }

    fn new_key(&self) -> String {
        let answer = self.site.api().create("https://example.com/here").unwrap();
        answer.json()["key"].as_str().unwrap().to_owned()
    }

    fn ask(&self, route: &Route, name: &str, fields: &str, body: &str) -> (String, RawAnswer) {
        let path = match route.path.contains("KEY") {
            true => route.path.replace("KEY", &self.new_key()),
            false => route.path.to_owned(),
        };
        let bytes = request(name, &path, fields, body);
        (path, ask(self.site.http(), &bytes))
    }

    /// An error is a problem document; a page shows it as a page.
    fn check_error(&mut self, method: &str, path: &str, answer: &RawAnswer, context: &str) {
        if answer.status < 400 {
            return;
        }
        assert!(answer.status < 500, "{context}: {answer}");
        if method == "HEAD" {
            assert!(answer.body.is_empty(), "{context}: {answer}");
            return;
        }
        if matches!(path, "/" | "/sign-in") && answer.status == 401 {
            let html = answer.header("content-type").unwrap_or_default();
            assert!(html.starts_with("text/html"), "{context}: {answer}");
            return;
        }
        let code = problem(answer, context);
        self.codes.insert(code);
    }

    /// The OpenAPI document names the status, where it describes the operation.
    fn check_documented(&self, template: &str, method: &str, status: u16, context: &str) {
        let operation = &self.document["paths"][template][method.to_ascii_lowercase()];
        if operation.is_object() {
            let documented = &operation["responses"][status.to_string()];
            assert!(
                documented.is_object(),
                "{context}: {status} is not documented"
            );
        }
    }
}

#[test]
fn every_endpoint_answers_every_method_and_every_credential_as_documented() {
    let mut desk = Desk::open();
    let mut asked = 0;
    for route in ROUTES.iter().chain(REPORTS) {
        for name in METHODS {
            let known = route.methods.iter().find(|method| method.name == name);
            for (place, (kind, fields)) in desk.credentials().into_iter().enumerate() {
                let context = format!("{name} {} with {kind} credentials", route.path);
                let (expected, extra, body) = match known {
                    Some(method) => (method.statuses[place], method.fields, method.body),
                    None => (405, "", ""),
                };
                let (path, answer) = desk.ask(route, name, &format!("{fields}{extra}"), body);
                assert_eq!(answer.status, expected, "{context}: {answer}");
                assert_eq!(
                    expected == 405,
                    answer.header("allow").is_some(),
                    "{context}: {answer}"
                );
                desk.check_error(name, &path, &answer, &context);
                desk.check_documented(route.template, name, expected, &context);
                asked += 1;
            }
        }
    }
    for path in NOWHERE {
        for name in METHODS {
            let answer = ask(desk.site.http(), &request(name, path, "", ""));
            let context = format!("{name} {path}");
            let known = path.starts_with("/assets/") || path.starts_with("/problems/");
            let expected = match name {
                "GET" | "HEAD" => 404,
                _ if known => 405,
                // What may be a key can be followed by any method that a link can keep.
                _ if path == "/metrics" && name == "TRACE" => 405,
                _ => 404,
            };
            assert_eq!(answer.status, expected, "{context}: {answer}");
            desk.check_error(name, path, &answer, &context);
            asked += 1;
        }
    }
    let mut api = desk.site.api();
    for code in &desk.codes {
        let status = api.get(&format!("/problems/{code}")).unwrap().status;
        assert_eq!(status, 200, "/problems/{code} explains nothing");
    }
    no_server_errors(&desk.site.metrics());
    println!("wire: {asked} combinations of endpoint, method and credentials, none above 499");
}

#[test]
fn the_table_holds_every_operation_of_the_openapi_document() {
    let site = Site::start(&[]);
    let document = site.api().get("/api/openapi.json").unwrap().json();
    let mut served = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            if METHODS.contains(&method.to_ascii_uppercase().as_str()) {
                served.insert(format!("{} {path}", method.to_ascii_uppercase()));
            }
        }
    }
    let tested: BTreeSet<String> = ROUTES
        .iter()
        .chain(REPORTS)
        .flat_map(|route| {
            let names = route.methods.iter().map(|method| method.name);
            names.map(move |name| format!("{name} {}", route.template))
        })
        .collect();
    let missing: Vec<_> = served.difference(&tested).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    assert!(served.len() >= 11, "{served:?}");
}

#[test]
fn a_key_is_taken_from_each_place_that_the_api_names() {
    let site = Site::start(&[]);
    let token = site.token();
    let status = |method: &str, path: &str, fields: &str, body: &str| {
        ask(site.http(), &request(method, path, fields, body)).status
    };
    let list = "/api/v1/links";
    for (fields, expected) in [
        (format!("Authorization: Bearer {token}\r\n"), 200),
        (format!("authorization: bearer   {token}\r\n"), 200),
        (format!("X-Api-Key: {token}\r\n"), 200),
        (format!("Authorization: Basic {token}\r\n"), 401),
        (format!("Authorization: {token}\r\n"), 401),
        ("Authorization: Bearer \r\n".to_owned(), 401),
        (format!("Authorization: Bearer {token}x\r\n"), 401),
        (
            format!("Authorization: Bearer {}\r\n", token.to_uppercase()),
            401,
        ),
        ("X-Api-Key: \u{e9}\r\n".to_owned(), 401),
        (format!("X-Api-Key: {}\r\n", "k".repeat(8_000)), 401),
        // A header counts before anything else.
        (
            format!("Authorization: Bearer no\r\nX-Api-Key: {token}\r\n"),
            401,
        ),
    ] {
        assert_eq!(status("GET", list, &fields, ""), expected, "{fields:.200}");
    }
    // Only the two operations of the original API take the key as a parameter.
    assert_eq!(
        status("GET", &format!("{list}?api_dev_key={token}"), "", ""),
        401
    );
    let create = "/api/v1/createURL";
    let query = format!("{create}?api_dev_key={token}&original_url=https://example.com/q");
    assert_eq!(status("POST", &query, "", ""), 200);
    let form = format!("api_dev_key={token}&original_url=https%3A%2F%2Fexample.com%2Ff");
    assert_eq!(status("POST", create, FORM, &form), 200);
    let json =
        format!("{{\"api_dev_key\":\"{token}\",\"original_url\":\"https://example.com/j\"}}");
    assert_eq!(status("POST", create, JSON, &json), 200);
    let wrong = "{\"api_dev_key\":\"curt_wrong\",\"original_url\":\"https://example.com/j\"}";
    assert_eq!(status("POST", create, JSON, wrong), 401);
}
