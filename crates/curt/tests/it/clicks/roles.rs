//! Counting is a role: whoever does not have it leaves clicks in the spool for whoever has.

use serde_json::json;

use super::{CAPTURED, Class, DROPPED, WAIT_MAX, clicks_of, metric, new_link};
use crate::api::Api;
use crate::site::Site;
use crate::wait::eventually;

const CLICKS: u64 = 200;

#[test]
fn clicks_wait_in_the_spool_until_somebody_counts_them() {
    let mut site = Site::start(&["server.workers=2", "clicks.flush_every=50ms"]);
    let key = new_link(&site, &json!({}));
    for _ in 0..2 {
        assert!(site.terminate().success());
        site.restart_as(&["redirect", "api"]);
        click(&site, &key);
        assert_eq!(
            (metric(&site, CAPTURED), metric(&site, DROPPED)),
            (CLICKS, 0)
        );
        assert_eq!(clicks_of(&mut site.api(), &key).human, 0);
    }
    assert!(site.terminate().success());
    site.restart();
    click(&site, &key);
    eventually(WAIT_MAX, || match clicks_of(&mut site.api(), &key).human {
        all if all == 3 * CLICKS => Ok(()),
        some => Err(format!("{some} of {} clicks are counted", 3 * CLICKS)),
    });
}

fn click(site: &Site, key: &str) {
    let mut api = Api::new(site.http(), "");
    for _ in 0..CLICKS {
        let answer = api.send(&Class::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
    }
}
