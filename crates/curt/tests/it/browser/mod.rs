//! The pages in a real browser, as people use them: with and without scripts, on a desk and on a phone.
//!
//! Pictures of what was seen are left in `target/screenshots`.

mod accessibility;
mod first_steps;
mod hostile;
mod journey;

use std::fs;
use std::path::Path;

use anyhow::Result;
use curt_testkit::engines::browser::{Browser, Driver, Look};

use crate::site::Site;

const EMAIL: &str = "ada@example.com";
const PASSWORD: &str = "correct horse battery";

/// An installation without an account, and the driver of its visitors' browsers.
struct Pages {
    site: Site,
    driver: Driver,
}

impl Pages {
    fn start(settings: &[&str]) -> Result<Self> {
        let driver = Driver::start()?;
        let cheap = [
            "accounts.password_memory=64KiB",
            "accounts.password_passes=1",
            "limits.sign_ins_per_address=",
        ];
        let mut site = Site::new(&[&cheap, settings].concat());
        site.restart();
        Ok(Self { site, driver })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.site.http())
    }

    fn browser(&self, look: Look) -> Browser {
        self.driver.browser(look).unwrap()
    }

    fn open(&self, browser: &Browser, path: &str) {
        browser.open_page(&self.url(path)).unwrap();
    }

    /// Where the first start sends its administrator.
    fn setup_url(&self) -> String {
        let start = self.url("/setup?token=");
        let logs = self.site.server().logs();
        let line = logs
            .split_whitespace()
            .find(|word| word.starts_with(&start));
        line.expect("a set-up link").to_owned()
    }

    /// Makes the first account, whose visitor is signed in then.
    fn set_up(&self, browser: &Browser) {
        browser.open_page(&self.setup_url()).unwrap();
        browser.fill("#first_name", "Ada").unwrap();
        browser.fill("#email", EMAIL).unwrap();
        browser.fill("#password", PASSWORD).unwrap();
        browser.click("main button[type=submit]").unwrap();
        browser.wait_for_text("Sign out").unwrap();
    }

    fn sign_in(&self, browser: &Browser, email: &str, password: &str) {
        self.open(browser, "/sign-in");
        browser.fill("#email", email).unwrap();
        browser.fill("#password", password).unwrap();
        browser.click("main button[type=submit]").unwrap();
        browser.wait_for_text("Sign out").unwrap();
    }
}

/// Leaves a picture of the window.
fn picture(browser: &Browser, name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../screenshots");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join(format!("{name}.png")),
        browser.screenshot().unwrap(),
    )
    .unwrap();
}

/// Nothing came from elsewhere, and no script or policy failed. That a page itself is an error page is no complaint.
fn assert_no_complaints(browser: &Browser) {
    let url = browser.url().unwrap();
    let is_about_page = |complaint: &String| {
        complaint.starts_with(&url) && complaint.contains("Failed to load resource")
    };
    let mut complaints = browser.complaints().unwrap();
    complaints.retain(|complaint| !is_about_page(complaint));
    assert!(complaints.is_empty(), "{complaints:#?}");
}
