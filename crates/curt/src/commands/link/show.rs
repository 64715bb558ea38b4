use jiff::Timestamp;
use serde_json::Value;

use crate::commands::terminal::{self, table};

/// Fields of one link in the order in which a person asks for them; further ones follow.
const FIRST: [&str; 9] = [
    "short_url",
    "target",
    "title",
    "tags",
    "state",
    "visibility",
    "clicks",
    "created_at",
    "expires_at",
];

/// A new link: its short URL alone, so that it can be piped.
pub(super) fn created(link: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return one(link, true);
    }
    println!("{}", text(link, "short_url"));
    Ok(())
}

/// One link, a line per field.
pub(super) fn one(link: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(link)?);
        return Ok(());
    }
    let fields = link.as_object().into_iter().flatten();
    let first = FIRST
        .iter()
        .filter_map(|name| Some((*name, link.get(name)?)));
    let others = fields
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| !FIRST.contains(name));
    for (name, value) in first.chain(others) {
        println!("{name:<16} {}", plain(value));
    }
    Ok(())
}

/// A page of links as a table.
pub(super) fn page(page: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return one(page, true);
    }
    let links = page["links"].as_array().map_or(&[][..], Vec::as_slice);
    let has_clicks = links.iter().any(|link| link.get("clicks").is_some());
    let mut table = match has_clicks {
        true => table([
            "short URL",
            "target",
            "title",
            "tags",
            "state",
            "created",
            "expires",
            "clicks",
        ]),
        false => table([
            "short URL",
            "target",
            "title",
            "tags",
            "state",
            "created",
            "expires",
        ]),
    };
    for link in links {
        let fields = [
            "short_url",
            "target",
            "title",
            "tags",
            "state",
            "created_at",
            "expires_at",
        ];
        let cells = fields.map(|field| text(link, field)).into_iter();
        table.add_row(cells.chain(has_clicks.then(|| text(link, "clicks"))));
    }
    println!("{table}");
    if let Some(next) = page["next"].as_str() {
        eprintln!("more: add --cursor {next}");
    }
    Ok(())
}

/// Who may follow a link.
pub(super) fn permissions(granted: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return one(granted, true);
    }
    let mut table = table(["email", "granted"]);
    for permission in granted["permissions"].as_array().into_iter().flatten() {
        table.add_row(["email", "granted_at"].map(|field| text(permission, field)));
    }
    println!("{table}");
    Ok(())
}

fn text(link: &Value, field: &str) -> String {
    match (&link[field], field.ends_with("_at")) {
        (Value::String(time), true) => short_time(time),
        (value, _) => plain(value),
    }
}

/// To the second, always as wide, so that columns can be compared and sorted.
fn short_time(time: &str) -> String {
    let parsed = time.parse::<Timestamp>();
    parsed.map_or_else(|_| time.to_owned(), |stamp| format!("{stamp:.0}"))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => terminal::plain(text),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
