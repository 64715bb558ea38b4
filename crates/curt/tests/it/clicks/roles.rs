//! Counting is a role: whoever does not have it leaves visits in the spool for whoever has.

use serde_json::json;

use super::{CAPTURED, DROPPED, Kind, PATIENCE, metric, new_link, visits_of};
use crate::api::Api;
use crate::site::Site;
use crate::wait::eventually;

const VISITS: u64 = 200;

#[test]
fn visits_wait_in_the_spool_until_somebody_counts_them() {
    let mut site = Site::start(&["server.workers=2", "clicks.flush_every=50ms"]);
    let key = new_link(&site, &json!({}));
    for _ in 0..2 {
        assert!(site.terminate().success());
        site.restart_as(&["redirect", "api"]);
        visit(&site, &key);
        assert_eq!(
            (metric(&site, CAPTURED), metric(&site, DROPPED)),
            (VISITS, 0)
        );
        assert_eq!(visits_of(&mut site.api(), &key).human, 0);
    }
    assert!(site.terminate().success());
    site.restart();
    visit(&site, &key);
    eventually(PATIENCE, || match visits_of(&mut site.api(), &key).human {
        all if all == 3 * VISITS => Ok(()),
        some => Err(format!("{some} of {} visits are counted", 3 * VISITS)),
    });
}

fn visit(site: &Site, key: &str) {
    let mut api = Api::new(site.http(), "");
    for _ in 0..VISITS {
        let answer = api.send(&Kind::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
    }
}
