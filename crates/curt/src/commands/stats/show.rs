//! A report as text.

use serde_json::{Map, Value};

use super::spark;
use crate::commands::terminal::plain;

/// Totals, the series of people as a line of bars, and the most frequent values.
pub(super) fn report(stats: &Value, dimensions: &[&str], top: &Map<String, Value>) -> String {
    let totals = &stats["totals"];
    let total = |name: &str, field: &str| format!("{name:<10}{}", number(&totals[field]));
    let mut lines = vec![total("people", "human")];
    // Not known of a part of the clicks.
    if let Some(visitors) = stats["visitors"].as_u64() {
        lines.push(format!("{:<10}about {visitors}", "visitors"));
    }
    lines.extend([
        total("bots", "bot"),
        total("prefetch", "prefetch"),
        total("head", "head"),
        total("all", "total"),
    ]);
    lines.extend(series(stats));
    for dimension in dimensions {
        lines.extend(values(dimension, &top[*dimension]));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn series(stats: &Value) -> [String; 3] {
    let points = list(&stats["series"]);
    // Of clicks by programs alone the curve is theirs.
    let has_humans =
        number(&stats["totals"]["human"]) > 0 || number(&stats["totals"]["total"]) == 0;
    let (name, field) = match has_humans {
        true => ("people", "human"),
        false => ("clicks", "total"),
    };
    let counts = points.iter().map(|point| number(&point["counts"][field]));
    let counts: Vec<u64> = counts.collect();
    let label =
        |point: Option<&Value>| point.map_or_else(String::new, |point| text(&point["label"]));
    let title = format!(
        "{name} by {}, {} to {}, {}",
        text(&stats["bucket"]),
        label(points.first()),
        label(points.last()),
        text(&stats["tz"])
    );
    [String::new(), title, spark::line(&counts)]
}

fn values(dimension: &str, top: &Value) -> Vec<String> {
    let values = list(&top["values"]).iter();
    let mut rows: Vec<_> = values
        .map(|value| (text(&value["value"]), number(&value["count"])))
        .collect();
    let rest = number(&top["rest"]);
    if rest > 0 {
        rows.push(("(all others)".to_owned(), rest));
    }
    let all = rows.iter().map(|(_, count)| *count).sum::<u64>().max(1);
    let width = rows.iter().map(|(name, _)| name.chars().count());
    let width = width.max().unwrap_or(0);
    let mut lines = vec![String::new(), plain(dimension)];
    for (name, count) in &rows {
        let share = u128::from(*count) * 100 / u128::from(all);
        lines.push(format!("  {name:<width$}  {count:>10}  {share:>3} %"));
    }
    if rows.is_empty() {
        lines.push("  nothing counted".to_owned());
    }
    if let Some(setting) = top["missing_setting"].as_str() {
        let setting = plain(setting);
        lines.push(format!(
            "  (the server's {setting} names no file that tells)"
        ));
    }
    if top["complete_from"] != top["from"] {
        let since = text(&top["complete_from"]);
        lines.push(format!(
            "  (of clicks since {since}; older ones are not looked at)"
        ));
    }
    lines
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
}

fn text(value: &Value) -> String {
    plain(value.as_str().unwrap_or_default())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_shows_totals_bars_and_values() {
        let stats = json!({
            "totals": {"total": 10, "human": 7, "bot": 2, "prefetch": 1, "head": 0},
            "visitors": 5, "tz": "UTC", "bucket": "day",
            "series": [
                {"label": "2026-11-14", "counts": {"human": 0}},
                {"label": "2026-11-15", "counts": {"human": 7}},
            ],
        });
        let top = json!({"country": {"values": [{"value": "DE", "count": 6}], "rest": 2}});
        let text = report(&stats, &["country"], top.as_object().unwrap());
        assert_eq!(
            text,
            "people    7\nvisitors  about 5\nbots      2\nprefetch  1\nhead      0\nall       10\n\
             \npeople by day, 2026-11-14 to 2026-11-15, UTC\n▁█\n\
             \ncountry\n  DE                     6   75 %\n  (all others)           2   25 %\n"
        );
    }

    #[test]
    fn what_strangers_sent_cannot_steer_the_terminal() {
        let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}txt\r\n";
        let top = json!({"referrer": {"values": [{"value": hostile, "count": 1}], "rest": 0}});
        let text = report(&json!({}), &["referrer"], top.as_object().unwrap());
        assert!(text.contains("owned"));
        let acting = |symbol: char| symbol != '\n' && symbol.is_control();
        assert!(
            !text.contains(acting) && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }
}
