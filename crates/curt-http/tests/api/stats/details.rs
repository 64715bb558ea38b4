use curt_core::{Dimension, UnixMillis};
use serde_json::json;

use super::{DAY, HOUR, apply, count, get, link, of_ada};
use crate::harness::{NOW, World};

#[tokio::test]
async fn details_are_ranked_and_filtered_and_what_no_file_tells_is_said() {
    let world = World::new().await;
    world.clock.set(UnixMillis(NOW.0 - DAY));
    world.link("abc").await;
    world.clock.set(NOW);
    let at = UnixMillis(NOW.0 - HOUR);
    for dimension in Dimension::DETAILS {
        if dimension != Dimension::City {
            count(&world, &link("abc"), at, dimension, "x y", 3).await;
        }
        let path = format!("/api/v1/links/abc/stats/{}", dimension.name());
        let top = get(&world, &path).await.json();
        assert_eq!(top["dimension"], dimension.name());
        let (values, missing) = match dimension {
            Dimension::City => (json!([]), json!("clicks.countries")),
            _ => (json!([{"value": "x y", "count": 3}]), json!(null)),
        };
        assert_eq!(
            (&top["values"], &top["missing_setting"]),
            (&values, &missing)
        );
    }
    let mut spring = of_ada(at, "abc");
    spring.details.set(Dimension::UtmCampaign, "Spring sale");
    spring.details.set(Dimension::City, "Bonn, DE");
    apply(&world, Vec::new(), vec![spring, of_ada(at, "abc")]).await;
    for (filter, found) in [
        ("utm_campaign=Spring+sale", 1),
        ("utm_campaign=spring+sale", 0),
        ("city=Bonn,+DE", 1),
        ("city=", 0),
        ("utm_source=x", 0),
    ] {
        let path = format!("/api/v1/links/abc/clicks?{filter}");
        let page = get(&world, &path).await.json();
        assert_eq!(
            page["clicks"].as_array().map(Vec::len),
            Some(found),
            "{filter}"
        );
        let path = format!("/api/v1/links/abc/stats/class?{filter}");
        let ranked = get(&world, &path).await.json();
        assert_eq!(
            ranked["values"][0]["count"].as_u64(),
            (found > 0).then_some(1),
            "{filter}"
        );
    }
}
