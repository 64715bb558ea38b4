//! From the first start to a link that somebody follows.

use curt_testkit::engines::browser::Look;
use curt_testkit::http::Client;
use curt_testkit::need;

use super::{Pages, assert_no_complaints, picture};

const TARGET: &str = "https://example.com/a/very/long/path?of=words";

#[test]
fn the_first_account_shortens_and_copies_a_link() {
    walk("desktop", Look::DESKTOP);
}

#[test]
fn the_first_steps_need_no_scripts_and_fit_a_phone() {
    walk("phone", Look::PHONE.without_scripts());
}

fn walk(name: &str, look: Look) {
    let pages = need!(Pages::start(&[]));
    let browser = pages.browser(look);
    pages.set_up(&browser);
    pages.open(&browser, "/");
    browser.fill("#target", TARGET).unwrap();
    browser.fill("#alias", "fits").unwrap();
    picture(&browser, &format!("first-screen-{name}"));
    browser
        .click("main form.fields button[type=submit]")
        .unwrap();
    browser.wait_for_text("Your short link is ready").unwrap();
    picture(&browser, &format!("shortened-{name}"));
    let field = browser.find("#short-url").unwrap();
    let short_url = browser.attribute_of(&field, "value").unwrap();
    assert_eq!(short_url, pages.url("/fits"));
    let copies = browser.find_all("button[data-copy]").unwrap();
    if look.has_scripts {
        browser.click_on(&copies[0]).unwrap();
        browser.wait_for_text("Copied").unwrap();
    }
    let wide = browser.run_script("return document.documentElement.scrollWidth", &[]);
    assert!(
        wide.unwrap().as_u64().unwrap() <= look.width.into(),
        "the page is cut off"
    );
    assert_no_complaints(&browser);
    let followed = Client::new(pages.site.http()).get("/fits").unwrap();
    assert_eq!(followed.status, 302);
    assert_eq!(followed.header("location"), Some(TARGET));
}
