//! What an accessibility checker finds on every page: nothing, in light and dark, on a desk and on a phone.

use curt_testkit::engines::browser::{Browser, Look, accessibility_checker};
use curt_testkit::http::{Client, Request};
use curt_testkit::need;
use serde_json::{Value, json};

use super::{Pages, assert_no_complaints};
use crate::api::Api;

/// For everybody.
const PUBLIC: &[&str] = &[
    "/",
    "/sign-in",
    "/sign-up",
    "/api",
    "/problems",
    "/problems/not-found",
    "/no-such-key",
];
/// For whoever is signed in.
const OWN: &[&str] = &[
    "/",
    "/account",
    "/links",
    "/links?search=nothing",
    "/links/seen",
    "/links/seen/edit",
    "/tags",
    "/clicks",
    "/clicks/orphans",
    "/admin/users",
    "/admin/invitations",
    "/admin/limits",
    "/admin/audit",
    "/admin/blocklist",
    "/admin/system",
    "/admin/plan",
];

#[test]
fn no_page_keeps_anybody_out() {
    let checker = need!(accessibility_checker());
    let pages = need!(Pages::start(&["accounts.sign_up=open"]));
    for look in [Look::DESKTOP, Look::PHONE.dark()] {
        let browser = pages.browser(look);
        for path in PUBLIC {
            pages.open(&browser, path);
            check(&browser, &checker, path, look);
        }
        match look == Look::DESKTOP {
            true => {
                pages.set_up(&browser);
                fill(&pages);
            }
            false => pages.sign_in(&browser, super::EMAIL, super::PASSWORD),
        }
        for path in OWN {
            pages.open(&browser, path);
            check(&browser, &checker, path, look);
        }
    }
}

/// A link with everything that pages show of one, and clicks.
fn fill(pages: &Pages) {
    let token = pages
        .site
        .app()
        .run(&["api-key", "add", "fill", "--user", super::EMAIL])
        .unwrap();
    let mut api = Api::new(pages.site.http(), token.trim());
    let link = json!({ "target": "https://example.com/", "alias": "seen", "title": "Seen", "tags": ["spring", "mail"] });
    assert_eq!(api.post("/api/v1/links", &link).unwrap().status, 201);
    for path in ["/seen?utm_source=mail", "/seen", "/no-such-key"] {
        let asked = Request::get(path).header("Referer", "https://example.org/");
        Client::new(pages.site.http()).send(&asked).unwrap();
    }
}

fn check(browser: &Browser, checker: &str, path: &str, look: Look) {
    let run = "const done = arguments[arguments.length - 1];\
        const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];\
        axe.run(document, { runOnly: rules }).then(found => done(found.violations.map(violation => \
            violation.id + ': ' + violation.nodes.map(node => node.html + ' ' + node.failureSummary).join('; '))), error => done([String(error)]));";
    let found = browser
        .run_script_until_called(&format!("{checker};{run}"), &[])
        .unwrap();
    assert_eq!(found, Value::Array(Vec::new()), "{path} {look:?}");
    assert_no_complaints(browser);
}
