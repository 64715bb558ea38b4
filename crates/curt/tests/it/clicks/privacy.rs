//! Who sees clicks, and what is kept about visitors.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use serde_json::json;

use super::{Class, WAIT_MAX, clicks_of, new_link, report, wait_until_counted};
use crate::api::Api;
use crate::files::{all_files, contents, holds};
use crate::site::Site;
use crate::wait::eventually;

const SETTINGS: [&str; 2] = ["server.workers=2", "server.trusted_proxies=127.0.0.1/32"];
const V4: &str = "203.0.113.77";
const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x5eed, 0x1234, 0x89ab, 0xcdef, 0x4242, 0x77);

#[test]
fn owners_see_their_clicks_and_nobody_elses() {
    let mut site = Site::start(&["clicks.flush_every=50ms"]);
    let (own, own_clicks) = (new_link(&site, &json!({})), 7);
    let token = site.token().to_owned();
    let other = site.new_token("other");
    site.use_token(&other);
    let (others, others_clicks) = (new_link(&site, &json!({})), 3);
    let mut visitor = Api::new(site.http(), "");
    for (key, clicks) in [(&own, own_clicks), (&others, others_clicks)] {
        for _ in 0..clicks {
            let asked = Class::Human.request(&format!("/{key}"));
            assert_eq!(visitor.send(&asked).unwrap().status, 302);
        }
    }
    wait_until_counted(&site);
    let askers = [
        (&token, &own, own_clicks, &others),
        (&other, &others, others_clicks, &own),
    ];
    for (token, key, clicks, foreign) in askers {
        let mut api = Api::new(site.http(), token);
        assert_eq!(clicks_of(&mut api, key).human, clicks);
        assert_eq!(report(&mut api, "/api/v1/stats").human, clicks);
        for path in [
            "stats",
            "stats/country",
            "clicks",
            "stats.csv",
            "clicks.csv",
            "live",
        ] {
            let path = format!("/api/v1/links/{foreign}/{path}");
            let refused = api.get(&path).unwrap();
            assert_eq!(refused.status, 404, "{path}: {refused:?}");
        }
        for path in ["/api/v1/stats?owner_id=all", "/api/v1/orphans"] {
            assert_eq!(api.get(path).unwrap().status, 403, "{path}");
        }
    }
}

#[test]
fn no_address_of_a_visitor_is_kept_once_the_click_is_counted() {
    let mut site = Site::start(&[&SETTINGS[..], &["clicks.flush_every=1h"]].concat());
    let key = new_link(&site, &json!({}));
    let mut visitor = Api::new(site.http(), "");
    let v6 = V6.to_string();
    // By a worker, and with a slash by the router.
    for path in [format!("/{key}"), format!("/{key}/")] {
        for address in [V4, &v6] {
            let asked = Class::Human
                .request(&path)
                .header("X-Forwarded-For", address);
            assert_eq!(visitor.send(&asked).unwrap().status, 302);
        }
    }
    assert!(!traces(&site).is_empty(), "the search finds what is there");
    site.kill();

    site.change_settings(&[&SETTINGS[..], &["clicks.flush_every=50ms"]].concat());
    site.restart();
    let mut api = site.api();
    eventually(WAIT_MAX, || match clicks_of(&mut api, &key).human {
        4 => Ok(()),
        counted => Err(format!("{counted} clicks are counted")),
    });
    // In the segment that is being written, too.
    let asked = Class::Human.request(&format!("/{key}"));
    let asked = asked.header("X-Forwarded-For", &v6);
    assert_eq!(api.send(&asked).unwrap().status, 302);
    eventually(WAIT_MAX, || match clicks_of(&mut api, &key).human {
        5 => Ok(()),
        counted => Err(format!("{counted} clicks are counted")),
    });
    eventually(WAIT_MAX, || match traces(&site).as_slice() {
        [] => Ok(()),
        files => Err(format!("addresses are in {files:?}")),
    });
    let clicks = api.get(&format!("/api/v1/links/{key}/clicks")).unwrap();
    assert!(!clicks.text().contains(V4), "{}", clicks.text());
    assert!(site.terminate().success());
    assert_eq!(traces(&site), Vec::<PathBuf>::new());
}

/// Files of the installation, what the server wrote to its outputs included, that hold an address of the visitors.
fn traces(site: &Site) -> Vec<PathBuf> {
    let v6 = V6.to_string();
    let wanted: [&[u8]; 3] = [V4.as_bytes(), v6.as_bytes(), &V6.octets()];
    let v4: &[u8] = &[203, 0, 113, 77];
    let mut files = all_files(site.folder());
    files.retain(|path| {
        let bytes = contents(path);
        let has = |text: &[u8]| holds(&bytes, text);
        // Four bytes may stand anywhere by chance; in the spool there is little else.
        let is_spool = path.extension().is_some_and(|end| end == "seg");
        wanted.into_iter().any(has) || is_spool && has(v4)
    });
    files
}
