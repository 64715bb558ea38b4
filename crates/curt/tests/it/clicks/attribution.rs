//! Whom a click counts for is decided when the link is followed, not when the click is counted.

use serde_json::json;

use super::{Class, clicks_of, new_link, report};
use crate::api::Api;
use crate::site::Site;

fn follow(api: &mut Api, key: &str, times: u64) {
    for _ in 0..times {
        let asked = Class::Human.request(&format!("/{key}"));
        assert_eq!(api.send(&asked).unwrap().status, 302, "{key}");
    }
}

fn of_tag(api: &mut Api, tag: &str) -> u64 {
    report(api, &format!("/api/v1/stats?tag={tag}")).human
}

#[test]
fn a_click_counts_for_the_tags_of_its_moment() {
    // Nothing is counted before the links have changed.
    let mut site = Site::start(&["server.workers=2", "clicks.flush_every=1h"]);
    let mut api = site.api();
    let tagged = |tag: &str| json!({ "tags": [tag] });

    let deleted = new_link(&site, &tagged("camp"));
    follow(&mut api, &deleted, 50);
    assert_eq!(api.delete(&deleted).unwrap().status, 204);

    let retagged = new_link(&site, &tagged("old"));
    follow(&mut api, &retagged, 20);
    let edited = api.edit(&retagged, &tagged("new")).unwrap();
    assert_eq!(edited.status, 200, "{}", edited.text());
    follow(&mut api, &retagged, 3);

    // The same for a link that is never answered from a copy.
    let few = new_link(&site, &json!({ "tags": ["few"], "max_clicks": 4 }));
    follow(&mut api, &few, 4);
    assert_eq!(api.follow(&few).unwrap().status, 410);
    assert_eq!(api.delete(&few).unwrap().status, 204);

    assert!(site.terminate().success());
    site.restart();
    let mut api = site.api();
    for (tag, clicks) in [("camp", 50), ("old", 20), ("new", 3), ("few", 4)] {
        assert_eq!(of_tag(&mut api, tag), clicks, "{tag}");
    }
    assert_eq!(clicks_of(&mut api, &retagged).human, 23);
    assert_eq!(report(&mut api, "/api/v1/stats").human, 77, "the owner's");
    let path = "/api/v1/clicks?limit=1000&tag=old";
    let clicks = api.get(path).unwrap().json();
    assert_eq!(clicks["clicks"].as_array().unwrap().len(), 20);
}
