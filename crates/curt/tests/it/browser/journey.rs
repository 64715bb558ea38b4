//! What users do with their links, from the first start to the audit log, in one go.

use std::time::{Duration, Instant};

use curt_testkit::engines::browser::{Browser, Look};
use curt_testkit::http::{Client, Request};
use curt_testkit::need;

use super::{EMAIL, PASSWORD, Pages, assert_no_complaints, picture};
use crate::length::time_max;
use crate::qr;

const TARGET: &str = "https://example.com/spring?utm_campaign=spring";
/// Until a click is seen by whoever looks at its link.
const SEEN_WITHIN: Duration = Duration::from_secs(2);
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const MEMBER: &str = "ben@example.com";

#[test]
fn users_manage_their_links() {
    walk(Look::DESKTOP);
}

#[test]
fn users_manage_their_links_on_a_phone_without_scripts() {
    walk(Look::PHONE.without_scripts());
}

fn walk(look: Look) {
    let pages = need!(Pages::start(&["accounts.sign_up=invite"]));
    let browser = pages.browser(look);
    pages.set_up(&browser);
    shorten(&pages, &browser, "spring");
    see_a_click(&pages, &browser, look);
    edit(&pages, &browser);
    show_a_conflicting_edit(&pages, &browser, look);
    decode_the_qr_code(&pages, &browser);
    refuse_a_stranger(&pages, &browser, look);
    invite_a_member(&pages, &browser, look);
    change_many(&pages, &browser, look);
    assert_no_complaints(&browser);
}

fn shorten(pages: &Pages, browser: &Browser, alias: &str) {
    pages.open(browser, "/");
    browser.fill("#target", TARGET).unwrap();
    browser.fill("#alias", alias).unwrap();
    press(browser, "form[action='/'] button[type=submit]");
    browser.wait_for_text("Your short link is ready").unwrap();
}

/// Presses a button and waits for the next page.
fn press(browser: &Browser, selector: &str) {
    browser.click(selector).unwrap();
}

fn see_a_click(pages: &Pages, browser: &Browser, look: Look) {
    pages.open(browser, "/links/spring");
    browser.wait_for_text("QR code").unwrap();
    let request = Request::get("/spring").header("User-Agent", AGENT);
    let followed = Client::new(pages.site.http()).send(&request).unwrap();
    assert_eq!(followed.status, 302);
    let begun = Instant::now();
    let is_seen = || {
        // The page counts by itself where it has scripts.
        if !look.has_scripts {
            browser.reload().unwrap();
        }
        let total = browser.find(".big output").unwrap();
        browser.text_of(&total).is_ok_and(|text| text == "1")
    };
    browser.wait_until("the click is counted", is_seen).unwrap();
    let took = begun.elapsed();
    println!("browser: a click is seen after {took:?}");
    assert!(took <= time_max(SEEN_WITHIN), "{took:?}");
    browser.reload().unwrap();
    for seen in ["Chrome", "Linux", "spring"] {
        browser.wait_for_text(seen).unwrap();
    }
    picture(browser, &format!("link-{}", look.width));
}

fn edit(pages: &Pages, browser: &Browser) {
    pages.open(browser, "/links/spring/edit");
    browser.fill("#title", "Spring sale").unwrap();
    browser.fill("#tags", "spring, mail").unwrap();
    press(browser, "form[action$='/edit'] button[type=submit]");
    browser.wait_for_text("Spring sale").unwrap();
}

fn show_a_conflicting_edit(pages: &Pages, browser: &Browser, look: Look) {
    let other = pages.browser(look);
    pages.sign_in(&other, EMAIL, PASSWORD);
    pages.open(browser, "/links/spring/edit");
    pages.open(&other, "/links/spring/edit");
    let save = "form[action$='/edit'] button[type=submit]";
    other.fill("#title", "Their title").unwrap();
    press(&other, save);
    other.wait_for_text("Their title").unwrap();
    browser.fill("#title", "My title").unwrap();
    press(browser, save);
    browser
        .wait_for_text("Somebody else has changed this link")
        .unwrap();
    let table = browser.find("table.versions").unwrap();
    let versions = browser.text_of(&table).unwrap();
    for version in ["Spring sale", "Their title", "My title"] {
        assert!(versions.contains(version), "{versions}");
    }
    picture(browser, &format!("conflict-{}", look.width));
    assert_no_complaints(browser);
    let field = browser.find("#title").unwrap();
    assert_eq!(browser.attribute_of(&field, "value").unwrap(), "My title");
    press(browser, save);
    browser.wait_for_text("My title").unwrap();
    other.reload().unwrap();
    other.wait_for_text("My title").unwrap();
}

/// As the browser shows it, by another program.
fn decode_the_qr_code(pages: &Pages, browser: &Browser) {
    pages.open(browser, "/links/spring/qr.svg");
    let file = pages.site.folder().join("qr.png");
    std::fs::write(&file, browser.screenshot().unwrap()).unwrap();
    if let Some(read) = qr::decoded(&file) {
        assert_eq!(read, pages.url("/spring"));
    }
}

fn refuse_a_stranger(pages: &Pages, browser: &Browser, look: Look) {
    pages.open(browser, "/links/spring/edit");
    browser.click("#visibility option[value=private]").unwrap();
    press(browser, "form[action$='/edit'] button[type=submit]");
    browser.wait_for_text("Your changes are saved").unwrap();
    let stranger = pages.browser(look);
    pages.open(&stranger, "/spring");
    stranger.wait_for_text("private").unwrap();
    assert!(stranger.url().unwrap().starts_with(&pages.url("/")));
    assert!(!stranger.source().unwrap().contains("example.com/spring"));
}

fn invite_a_member(pages: &Pages, browser: &Browser, look: Look) {
    pages.open(browser, "/admin/invitations");
    press(
        browser,
        "form[action='/admin/invitations'] button[type=submit]",
    );
    let field = browser.find("#invite").unwrap();
    let address = browser.attribute_of(&field, "value").unwrap();
    let member = pages.browser(look);
    member.open_page(&address).unwrap();
    member.fill("#first_name", "Ben").unwrap();
    member.fill("#email", MEMBER).unwrap();
    member.fill("#password", PASSWORD).unwrap();
    press(&member, "main button[type=submit]");
    member.wait_for_text("Sign out").unwrap();
    pages.open(&member, "/links");
    member.wait_for_text("You have no links yet").unwrap();
    for hidden in ["/links/spring", "/links/spring/edit", "/admin/users"] {
        pages.open(&member, hidden);
        let text = member.text().unwrap();
        assert!(
            !text.contains("My title") && !text.contains(EMAIL),
            "{text}"
        );
    }
    shorten(pages, &member, "ben");
    pages.open(&member, "/links");
    member.wait_for_text("ben").unwrap();
    pages.open(browser, "/links");
    assert!(
        !browser.text().unwrap().contains("/ben"),
        "the administrator's own"
    );
}

fn change_many(pages: &Pages, browser: &Browser, look: Look) {
    shorten(pages, browser, "one");
    shorten(pages, browser, "two");
    pages.open(browser, "/links");
    picture(browser, &format!("links-{}", look.width));
    let tick = || {
        for key in ["one", "two"] {
            browser
                .click(&format!("input[name=key][value={key}]"))
                .unwrap();
        }
    };
    tick();
    browser.fill("fieldset #tags", "bulk").unwrap();
    press(browser, "button[name=action][value=tag]");
    browser.wait_for_text("bulk").unwrap();
    pages.open(browser, "/links?tag=bulk");
    tick();
    press(browser, "button[name=action][value=delete]");
    browser.wait_for_text("Delete these 2 links?").unwrap();
    press(browser, "main form button.danger");
    browser
        .wait_until("they are gone", || {
            pages.open(browser, "/links");
            browser
                .text()
                .is_ok_and(|text| !text.contains("/one") && !text.contains("/two"))
        })
        .unwrap();
    pages.open(browser, "/admin/audit");
    let text = browser.text().unwrap();
    for noted in ["one", "two", MEMBER] {
        assert!(text.contains(noted), "{noted}: {text}");
    }
    picture(browser, &format!("audit-{}", look.width));
}
