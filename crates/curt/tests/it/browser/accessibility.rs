//! What an accessibility checker finds on every page: nothing, in light and dark, on a desk and on a phone. And what each
//! page loads: little, and nothing from elsewhere.

use curt_testkit::engines::browser::{Browser, Look, accessibility_checker};
use curt_testkit::http::{Client, Request};
use curt_testkit::need;
use serde_json::{Value, json};

use super::{Pages, assert_no_complaints, picture};
use crate::api::Api;
use crate::length::{is_full, length};

/// A page as it is sent, without its style, script and pictures.
const PAGE_BYTES_MAX: u64 = 60_000;
/// The first two are seen in the short form, too.
const LOOKS: [Look; 4] = [
    Look::DESKTOP,
    Look::PHONE.dark(),
    Look::PHONE,
    Look::DESKTOP.dark(),
];

/// For everybody.
const PUBLIC: &[&str] = &[
    "/",
    "/sign-in",
    "/sign-up",
    "/api",
    "/api/operations/createLink",
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
    "/seen+",
    "/locked",
    "/gone",
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
    let pages = need!(Pages::start(&[
        "accounts.sign_up=open",
        "pages.preview=true"
    ]));
    for &look in length(&LOOKS[..2], &LOOKS[..]) {
        let browser = pages.browser(look);
        for path in PUBLIC {
            pages.open(&browser, path);
            check(&pages, &browser, &checker, path, look);
        }
        match look == Look::DESKTOP {
            true => {
                pages.set_up(&browser);
                fill(&pages);
            }
            false => pages.sign_in(&browser, super::EMAIL, super::PASSWORD),
        }
        let user = user_page(&pages, &browser);
        for path in OWN.iter().copied().chain([user.as_str()]) {
            pages.open(&browser, path);
            check(&pages, &browser, &checker, path, look);
        }
    }
}

/// The page about the one user that there is.
fn user_page(pages: &Pages, browser: &Browser) -> String {
    pages.open(browser, "/admin/users");
    let first =
        "return document.querySelector('main a[href^=\"/admin/users/\"]').getAttribute('href');";
    let address = browser.run_script(first, &[]).unwrap();
    address.as_str().unwrap().to_owned()
}

/// A link with everything that pages show of one, and clicks; and links that lead nowhere at once.
fn fill(pages: &Pages) {
    let token = pages
        .site
        .app()
        .run(&["api-key", "add", "fill", "--user", super::EMAIL])
        .unwrap();
    let mut api = Api::new(pages.site.http(), token.trim());
    let link = json!({ "target": "https://example.com/", "alias": "seen", "title": "Seen", "tags": ["spring", "mail"] });
    let locked = json!({ "target": "https://example.com/", "alias": "locked", "visibility": "password", "password": "correct horse" });
    let gone = json!({ "target": "https://example.com/", "alias": "gone" });
    for link in [link, locked, gone] {
        assert_eq!(api.post("/api/v1/links", &link).unwrap().status, 201);
    }
    assert!(api.delete("gone").unwrap().status < 300);
    for path in ["/seen?utm_source=mail", "/seen", "/no-such-key"] {
        let asked = Request::get(path).header("Referer", "https://example.org/");
        Client::new(pages.site.http()).send(&asked).unwrap();
    }
}

fn check(pages: &Pages, browser: &Browser, checker: &str, path: &str, look: Look) {
    let run = "const done = arguments[arguments.length - 1];\
        const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];\
        axe.run(document, { runOnly: rules }).then(found => done(found.violations.map(violation => \
            violation.id + ': ' + violation.nodes.map(node => node.html + ' ' + node.failureSummary).join('; '))), error => done([String(error)]));";
    let found = browser
        .run_script_until_called(&format!("{checker};{run}"), &[])
        .unwrap();
    assert_eq!(found, Value::Array(Vec::new()), "{path} {look:?}");
    assert_no_complaints(browser);
    check_what_is_loaded(pages, browser, path);
    if is_full() {
        let width = if look.width == Look::PHONE.width {
            "phone"
        } else {
            "desktop"
        };
        let light = if look.is_dark { "dark" } else { "light" };
        let name = path.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        picture(browser, &format!("page{name}-{width}-{light}"));
    }
}

/// One round trip must do: nothing but one stylesheet keeps a page from being shown.
fn check_what_is_loaded(pages: &Pages, browser: &Browser, path: &str) {
    let script = "const [page] = performance.getEntriesByType('navigation');\
        const loaded = performance.getEntriesByType('resource');\
        return [page.encodedBodySize, loaded.map(one => one.name), \
            loaded.filter(one => one.renderBlockingStatus === 'blocking').map(one => one.name)];";
    let found = browser.run_script(script, &[]).unwrap();
    let bytes = found[0].as_u64().unwrap();
    assert!(
        (1..=PAGE_BYTES_MAX).contains(&bytes),
        "{path}: {bytes} bytes"
    );
    let loaded = found[1].as_array().unwrap();
    let is_own = |one: &Value| one.as_str().unwrap().starts_with(&pages.url("/"));
    assert!(
        !loaded.is_empty() && loaded.iter().all(is_own),
        "{path}: {loaded:?}"
    );
    let blocking = found[2].as_array().unwrap();
    assert!(blocking.len() <= 1, "{path}: {blocking:?}");
}
