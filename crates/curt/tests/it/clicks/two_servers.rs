//! A spool belongs to one process.

use serde_json::json;

use super::{CAPTURED, Class, DROPPED, clicks_of, metric, new_link, wait_until_counted};
use crate::api::Api;
use crate::site::Site;

const CLICKS: u64 = 300;

#[test]
fn a_second_server_on_the_spool_is_refused_and_the_first_counts_on() {
    let site = Site::start(&["server.workers=2", "clicks.flush_every=50ms"]);
    let key = new_link(&site, &json!({}));
    click(&site, &key);
    let spool = site.folder().join("data/spool");
    let other = Site::new(&[&format!("store.stream=spool:{}", spool.display())]);
    // With databases of its own: an installation without them is refused for that.
    assert!(other.output(&["migrate", "--new"]).status.success());
    let mut arguments = vec!["serve".to_owned()];
    arguments.extend(["--set".to_owned(), "server.listen=127.0.0.1:0".to_owned()]);
    arguments.extend(["--set".to_owned(), "server.admin_listen=".to_owned()]);
    arguments.extend(other.set_arguments());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for _ in 0..3 {
        let refused = other.output(&arguments);
        assert!(!refused.status.success());
        let said = String::from_utf8_lossy(&refused.stderr);
        let holder = format!("in use by process {}", site.server().pid());
        assert!(said.contains(&holder), "{said}");
        click(&site, &key);
    }
    wait_until_counted(&site);
    assert_eq!(
        (metric(&site, CAPTURED), metric(&site, DROPPED)),
        (4 * CLICKS, 0)
    );
    assert_eq!(clicks_of(&mut site.api(), &key).human, 4 * CLICKS);
}

fn click(site: &Site, key: &str) {
    let mut api = Api::new(site.http(), "");
    for _ in 0..CLICKS {
        let answer = api.send(&Class::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
    }
}
