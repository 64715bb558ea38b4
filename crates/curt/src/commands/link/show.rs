use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

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
    for (name, value) in link.as_object().into_iter().flatten() {
        println!("{name:<16} {}", plain(value));
    }
    Ok(())
}

/// A page of links as a table.
pub(super) fn page(page: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return one(page, true);
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["short URL", "target", "title", "created", "expires"]);
    for link in page["links"].as_array().into_iter().flatten() {
        let fields = ["short_url", "target", "title", "created_at", "expires_at"];
        table.add_row(fields.map(|field| text(link, field)));
    }
    println!("{table}");
    if let Some(next) = page["next"].as_str() {
        eprintln!("more: add --cursor {next}");
    }
    Ok(())
}

fn text(link: &Value, field: &str) -> String {
    plain(&link[field])
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
