//! Texts that would be scripts if a page did not escape them, through everything that strangers and users can write.

use curt_testkit::engines::browser::{Browser, Look};
use curt_testkit::http::{Client, Request};
use curt_testkit::need;
use serde_json::json;

use super::{EMAIL, PASSWORD, Pages, assert_no_complaints};
use crate::api::Api;
use crate::length::length;

/// What each of them does when it runs.
const RUN: &str = "window.ran=1";
/// How a text breaks out of where it stands: `RUN` is put in for `@`.
const SHAPES: &[&str] = &[
    "<script>@</script>",
    "</script><script>@</script>",
    "</title><script>@</script>",
    "</textarea><script>@</script>",
    "<img src=x onerror=@>",
    "<img/src='x'onerror=@>",
    "<svg onload=@>",
    "<svg><script>@</script></svg>",
    "<svg><animate onbegin=@ attributeName=x dur=1s>",
    "<body onload=@>",
    "<iframe srcdoc='<script>parent.@</script>'>",
    "<iframe src=\"javascript:@\">",
    "<a href=\"javascript:@\">x</a>",
    "<math><mtext><script>@</script></mtext></math>",
    "<details open ontoggle=@>",
    "<input autofocus onfocus=@>",
    "<video><source onerror=@></video>",
    "<object data=\"javascript:@\">",
    "<style>@import 'x';</style><script>@</script>",
    "<link rel=stylesheet href=x onerror=@>",
    "<meta http-equiv=refresh content=\"0;url=javascript:@\">",
    "<base href=\"javascript:@//\">",
    "<form action=\"javascript:@\"><button>x</button></form>",
    "<noscript><p title=\"</noscript><script>@</script>\">",
    "<!--><script>@</script-->",
    "<![CDATA[<script>@</script>]]>",
    "{{constructor.constructor('@')()}}",
    "${@}",
    "%3Cscript%3E@%3C/script%3E",
    "&lt;script&gt;@&lt;/script&gt;",
];
/// What stands before and after a shape, to leave what it is put into.
const BREAKS: &[(&str, &str)] = &[
    ("", ""),
    ("\"", "\""),
    ("'", "'"),
    ("\">", "<\""),
    ("'>", "<'"),
    ("\" x=\"", ""),
    ("`", "`"),
    ("</a>", ""),
    ("-->", "<!--"),
    ("\\\"", "//"),
];

fn hostile_texts() -> Vec<String> {
    let shapes = SHAPES.iter().map(|shape| shape.replace('@', RUN));
    shapes
        .flat_map(|shape| {
            BREAKS
                .iter()
                .map(move |(before, after)| format!("{before}{shape}{after}"))
        })
        .collect()
}

#[test]
fn no_text_runs_on_any_page() {
    let texts = hostile_texts();
    assert!(texts.len() >= 300);
    // Whole lists are on few pages, so that all texts are seen in the short form, too.
    let of_links = length(6, texts.len());
    let pages = need!(Pages::start(&[
        "limits.misses_per_address=",
        "limits.creations_per_address="
    ]));
    let browser = pages.browser(Look::DESKTOP);
    pages.set_up(&browser);
    let token = pages
        .site
        .app()
        .run(&["api-key", "add", "hostile", "--user", EMAIL])
        .unwrap();
    let mut api = Api::new(pages.site.http(), token.trim());
    let mut visitor = Client::new(pages.site.http());
    for (number, text) in texts.iter().enumerate() {
        let key = format!("hostile{number}");
        let tag: String = text
            .chars()
            .filter(|letter| *letter != ',')
            .take(60)
            .collect();
        let link = json!({
            "target": format!("https://example.com/{text}"),
            "alias": key, "title": text, "tags": [tag], "forward_query": true,
        });
        let made = api.post("/api/v1/links", &link).unwrap();
        assert_eq!(made.status, 201, "{text}: {}", made.text());
        let query = encode(text);
        let click = format!("/{key}?utm_source={query}&utm_campaign={query}&utm_content={query}");
        let asked = Request::get(&click)
            .header("User-Agent", text)
            .header("Referer", format!("https://{number}.example/{text}"));
        assert_eq!(visitor.send(&asked).unwrap().status, 302, "{text}");
        let orphan = Request::get(&format!("/none{number}")).header("User-Agent", text);
        assert_eq!(visitor.send(&orphan).unwrap().status, 404);
    }
    rename(&pages, &browser, &texts[0]);
    look_at_lists(&pages, &browser);
    for number in (0..texts.len()).step_by(texts.len() / of_links) {
        for part in ["", "/edit"] {
            look_at(&pages, &browser, &format!("/links/hostile{number}{part}"));
        }
    }
    for text in texts.iter().step_by(texts.len() / of_links) {
        for page in [
            "/links?search",
            "/links?tag",
            "/clicks?tag",
            "/admin/audit?subject",
        ] {
            look_at(&pages, &browser, &format!("{page}={}", encode(text)));
        }
    }
}

/// Gives the visitor a name that is hostile, too.
fn rename(pages: &Pages, browser: &Browser, text: &str) {
    pages.open(browser, "/account");
    let name: String = text.chars().take(60).collect();
    browser.fill("#first_name", &name).unwrap();
    browser
        .click("form[action='/account'] button[type=submit]")
        .unwrap();
    pages.sign_in(browser, EMAIL, PASSWORD);
}

fn look_at_lists(pages: &Pages, browser: &Browser) {
    for path in [
        "/",
        "/tags",
        "/clicks",
        "/clicks?owner=all",
        "/clicks/orphans",
        "/account",
        "/admin/users",
        "/admin/audit",
        "/admin/blocklist",
    ] {
        look_at(pages, browser, path);
    }
    let mut path = "/links".to_owned();
    loop {
        look_at(pages, browser, &path);
        let next = browser.find_all("a[rel=next]").unwrap();
        let Some(next) = next.first() else { return };
        let address = browser.attribute_of(next, "href").unwrap();
        path = address.strip_prefix(&pages.url("")).unwrap().to_owned();
    }
}

fn look_at(pages: &Pages, browser: &Browser, path: &str) {
    pages.open(browser, path);
    let ran = browser
        .run_script("return window.ran === undefined", &[])
        .unwrap();
    assert_eq!(ran, true, "{path}: a text ran");
    assert_no_complaints(browser);
    assert_eq!(
        browser.url().unwrap(),
        pages.url(path),
        "the page led elsewhere"
    );
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
