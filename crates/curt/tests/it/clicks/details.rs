//! What clicks are counted by besides what every browser sends: groups of referrers and UTM parameters.

use serde_json::{Value, json};

use super::{Class, new_link, wait_until_counted};
use crate::api::Api;
use crate::site::Site;

fn follow(api: &mut Api, path: &str, referrer: Option<&str>) {
    let mut asked = Class::Human.request(path);
    if let Some(referrer) = referrer {
        asked = asked.header("Referer", referrer);
    }
    assert_eq!(api.send(&asked).unwrap().status, 302, "{path}");
}

/// Values and their counts, and the setting that is missing.
fn ranked(api: &mut Api, key: &str, dimension: &str) -> (Value, Value) {
    let path = format!("/api/v1/links/{key}/stats/{dimension}");
    let report = api.get(&path).unwrap().json();
    let values = report["values"].as_array().unwrap().iter();
    let pair = |value: &Value| json!([value["value"], value["count"]]);
    let values = values.map(pair).collect();
    (Value::Array(values), report["missing_setting"].clone())
}

#[test]
fn utm_parameters_of_the_address_and_groups_of_referrers_are_counted() {
    let site = Site::start(&["clicks.flush_every=1s"]);
    let mut api = site.api();
    let target = "https://example.com/?utm_source=Letter&x=1&utm_campaign=%C3%BCber";
    // Answered from a copy, and, for so many clicks only, never from one.
    for more in [json!({}), json!({ "max_clicks": 100 })] {
        let mut link = json!({ "target": target, "forward_query": true });
        for (name, value) in more.as_object().into_iter().flatten() {
            link[name] = value.clone();
        }
        let key = new_link(&site, &link);
        let plain = new_link(&site, &more);
        follow(&mut api, &format!("/{key}"), Some("https://www.google.de/"));
        let forwarded = format!("/{key}?utm_source=own&utm_medium=qr+code&a=b");
        follow(&mut api, &forwarded, Some("https://l.facebook.com/"));
        follow(&mut api, &forwarded, None);
        // Not forwarded, so not part of the address.
        follow(&mut api, &format!("/{plain}?utm_source=own"), None);
        wait_until_counted(&site);
        for (dimension, values) in [
            ("utm_source", json!([["Letter", 3]])),
            ("utm_campaign", json!([["über", 3]])),
            ("utm_medium", json!([["qr code", 2]])),
            ("utm_term", json!([])),
            (
                "referrer_group",
                json!([["direct", 1], ["search", 1], ["social", 1]]),
            ),
        ] {
            let expected = (values, Value::Null);
            assert_eq!(ranked(&mut api, &key, dimension), expected, "{dimension}");
        }
        assert_eq!(ranked(&mut api, &plain, "utm_source").0, json!([]));
        let filtered =
            format!("/api/v1/links/{key}/clicks?utm_medium=qr+code&referrer_group=social");
        let clicks = api.get(&filtered).unwrap().json();
        assert_eq!(clicks["clicks"].as_array().unwrap().len(), 1);
        assert_eq!(clicks["clicks"][0]["utm_campaign"], "über");
        for (dimension, setting) in [
            ("city", "clicks.countries"),
            ("country", "clicks.countries"),
            ("network", "clicks.networks"),
        ] {
            assert_eq!(ranked(&mut api, &key, dimension).1, setting);
        }
    }
}
