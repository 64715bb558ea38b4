//! `/admin/system`: what this process and its engines do now.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};

use super::{AdminBar, Refused, administrator, frame};
use crate::api::system::SystemBody;
use crate::caller::Caller;
use crate::pages::frame::Frame;
use crate::pages::page;
use crate::state::App;

#[derive(Template)]
#[template(path = "admin_system.html")]
struct SystemPage {
    frame: Frame,
    bar: AdminBar,
    system: SystemBody,
    groups: Vec<ShownGroup>,
}

struct ShownGroup {
    title: &'static str,
    rows: Vec<(String, String)>,
}

fn title(group: &str) -> &'static str {
    match group {
        "keys" => "Key supply",
        "caches" => "Caches",
        "clicks" => "Clicks",
        "stores" => "Stores",
        _ => "Requests",
    }
}

/// `curt_cache_lookups_total` of `outcome="hit"`: cache lookups, hit.
fn words(metric: &str, labels: &str) -> String {
    let name = metric
        .trim_start_matches("curt_")
        .trim_end_matches("_total");
    let mut words = name.replace('_', " ");
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let value = label.split_once('=').map_or(label, |(_, value)| value);
        words.push_str(", ");
        words.push_str(value.trim_matches('"'));
    }
    words
}

fn shown(metric: &str, value: f64) -> String {
    if metric.contains("bytes") {
        return curt_plan::bytes(value);
    }
    if metric.contains("seconds") {
        return format!("{value:.1} s");
    }
    match value.fract() == 0.0 && value < 1e6 {
        true => format!("{value:.0}"),
        false => curt_plan::count(value),
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Refused> {
    let administrator = administrator(&app, &caller, &uri).await?;
    let reading = {
        let app = Arc::clone(&app);
        async move { SystemBody::read(&app).await }
    };
    let system = app
        .scans
        .read(administrator.principal.user, reading)
        .await?;
    let groups = system
        .figures
        .iter()
        .filter(|group| !group.figures.is_empty());
    let page_shown = SystemPage {
        frame: frame(&app, &administrator),
        bar: AdminBar::new("/admin/system", &administrator),
        groups: groups
            .map(|group| ShownGroup {
                title: title(group.name),
                rows: group
                    .figures
                    .iter()
                    .map(|figure| {
                        let name = words(&figure.metric, &figure.labels);
                        (name, shown(&figure.metric, figure.value))
                    })
                    .collect(),
            })
            .collect(),
        system,
    };
    Ok(page(StatusCode::OK, &page_shown))
}
