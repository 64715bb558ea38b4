use std::sync::Arc;

use curt_core::clock::ManualClock;
use curt_core::{Alphabet, Clock};
use curt_links::{
    EditLink, LinkMetrics, LinkSettings, Links, ResolveMetrics, Resolver, ResolverSettings,
};
use curt_testkit::keys::random_supply;
use prometheus_client::registry::Registry;

use crate::gated::gated_store;
use crate::world::*;

#[tokio::test]
async fn what_happens_is_counted() {
    let mut registry = Registry::default();
    let clock = Arc::new(ManualClock::at(START));
    let store = gated_store();
    let resolver = Resolver::new(
        ResolverSettings::default(),
        store.clone(),
        Arc::default(),
        clock.clone(),
        ResolveMetrics::register(&mut registry),
    );
    let links = Links::new(
        LinkSettings::default(),
        store.into(),
        random_supply(Alphabet::Base62, 7),
        Arc::default(),
        resolver.clone(),
        clock.clone(),
        LinkMetrics::register(&mut registry),
    );
    let link = links.create(ANN, new("https://example.com/"), None);
    let key = link.await.unwrap().link.id.key;
    let other = links.create(ANN, new("https://example.com/"), None);
    let other = other.await.unwrap().link.id.key;
    for key in [key.as_str(), "absent", "absent"] {
        resolver.resolve(named(key)).await.unwrap();
    }
    for _ in 0..3 {
        assert!(resolver.cached(named(key.as_str()), clock.now()).is_some());
    }
    resolver.count_hits(3);
    let edit = EditLink {
        title: Some(Some("t".into())),
        ..EditLink::default()
    };
    links
        .edit(own(ANN), other.as_str(), None, edit)
        .await
        .unwrap();
    links.delete(own(ANN), other.as_str(), None).await.unwrap();

    let mut shown = String::new();
    prometheus_client::encoding::text::encode(&mut shown, &registry).unwrap();
    for line in [
        r#"curt_cache_lookups_total{result="hit"} 3"#,
        r#"curt_cache_lookups_total{result="miss"} 2"#,
        r#"curt_cache_lookups_total{result="absent"} 1"#,
        r#"curt_links_created_total{origin="random"} 2"#,
        "curt_links_edited_total 1",
        "curt_links_deleted_total 1",
        "curt_cache_links 1",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    assert!(shown.contains("curt_cache_bytes "));
}
