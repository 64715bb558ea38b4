//! Files that clicks are read by, which change while the server runs.

use std::fs;

use mmdb_writer::{Value as Record, Writer};
use serde_json::json;

use super::{BROWSER, Class, WAIT_MAX, new_link};
use crate::site::Site;
use crate::wait::eventually;

const LOADED: &str = "reference_loaded";
const REFUSED: &str = "reference_refused";

/// A list that has every address of this machine in one country.
fn countries(code: &str) -> Vec<u8> {
    let mut list = Writer::new("test");
    let record = Record::map([("country_code", Record::from(code))]);
    let network: ipnet::IpNet = "127.0.0.0/8".parse().unwrap();
    list.insert_value(network, record).unwrap();
    list.to_bytes().unwrap()
}

/// The built-in rules, which call this browser by another name.
fn rules(browser: &str) -> Vec<u8> {
    let rules = curt_clicks::classify::BUILT_IN;
    let renamed = rules.replace("\nFirefox = ", &format!("\n{browser} = "));
    assert_ne!(rules, renamed);
    renamed.into_bytes()
}

/// Puts a file in the place of another.
fn put(site: &Site, name: &str, bytes: &[u8]) {
    let new = site.folder().join("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(new, site.folder().join(name)).unwrap();
}

fn wait_for_event(site: &Site, event: &str, setting: &str, times: usize) {
    eventually(WAIT_MAX, || {
        let logs = site.server().logs();
        let told = logs.lines();
        let told = told.filter(|line| line.contains(event) && line.contains(setting));
        match told.count() {
            count if count == times => Ok(()),
            count => Err(format!("{event} {count} times: {logs}")),
        }
    });
}

/// Follows the link once, and tells country and browser of that click.
fn follow(site: &Site, key: &str) -> (String, String) {
    let mut api = site.api();
    let path = format!("/api/v1/links/{key}/clicks");
    let count = |page: &serde_json::Value| page["clicks"].as_array().unwrap().len();
    let before = count(&api.get(&path).unwrap().json());
    let answer = api.send(&Class::Human.request(&format!("/{key}"))).unwrap();
    assert_eq!(answer.status, 302, "{answer:?}");
    eventually(WAIT_MAX, || {
        let page = api.get(&path).unwrap().json();
        let text = |name: &str| page["clicks"][0][name].as_str().unwrap().to_owned();
        match count(&page) > before {
            true => Ok((text("country"), text("browser"))),
            false => Err(format!("the click is not listed: {page}")),
        }
    })
}

fn said(country: &str, browser: &str) -> (String, String) {
    (country.to_owned(), browser.to_owned())
}

#[test]
fn changed_files_count_for_the_next_click_and_broken_ones_do_not() {
    assert!(BROWSER.contains("Firefox"));
    let mut site = Site::new(&[
        "server.workers=1",
        "log.level=info",
        "clicks.countries=countries.mmdb",
        "clicks.rules=rules.txt",
        "clicks.files_reload=50ms",
    ]);
    put(&site, "countries.mmdb", &countries("DE"));
    put(
        &site,
        "rules.txt",
        curt_clicks::classify::BUILT_IN.as_bytes(),
    );
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    let key = new_link(&site, &json!({}));
    assert_eq!(follow(&site, &key), said("DE", "Firefox"));

    put(&site, "countries.mmdb", &countries("FR"));
    wait_for_event(&site, LOADED, "clicks.countries", 1);
    assert_eq!(follow(&site, &key), said("FR", "Firefox"));

    put(&site, "rules.txt", &rules("Fuchs"));
    wait_for_event(&site, LOADED, "clicks.rules", 1);
    assert_eq!(follow(&site, &key), said("FR", "Fuchs"));

    let half = countries("SE");
    put(&site, "countries.mmdb", &half[..half.len() / 2]);
    put(&site, "rules.txt", b"no rules");
    wait_for_event(&site, REFUSED, "clicks.countries", 1);
    wait_for_event(&site, REFUSED, "clicks.rules", 1);
    assert_eq!(follow(&site, &key), said("FR", "Fuchs"));

    // It was told once, however often it was looked at meanwhile.
    put(&site, "countries.mmdb", &countries("SE"));
    wait_for_event(&site, LOADED, "clicks.countries", 2);
    assert_eq!(follow(&site, &key), said("SE", "Fuchs"));
    wait_for_event(&site, REFUSED, "clicks.countries", 1);
    wait_for_event(&site, REFUSED, "clicks.rules", 1);
}
