//! The live feed, a line per event.

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::commands::client::Client;
use crate::commands::terminal::plain;

/// Prints what is counted until the server ends the feed for good. A feed that lasted its time is opened again.
pub(super) fn follow(
    client: &Client,
    path: &[&str],
    query: &[(&str, String)],
    json: bool,
) -> anyhow::Result<()> {
    let mut last_event_id = None;
    loop {
        match one_feed(client, path, query, json, &mut last_event_id)?.as_deref() {
            Some("time") => {}
            Some("shutdown") => bail!("the server stops; run the command again when it is back"),
            Some(_) => bail!("these clicks may not be seen any more"),
            None => bail!("the server ended the feed"),
        }
    }
}

/// Prints the events of one feed, behind the last one that was seen, and returns the reason that it gave for its end.
fn one_feed(
    client: &Client,
    path: &[&str],
    query: &[(&str, String)],
    json: bool,
    last_event_id: &mut Option<String>,
) -> anyhow::Result<Option<String>> {
    let mut event = String::new();
    for line in client.lines(path, query, last_event_id.as_deref())? {
        let line = line.context("the connection broke off")?;
        if let Some(id) = line.strip_prefix("id:") {
            *last_event_id = Some(id.trim().to_owned());
        }
        if let Some(name) = line.strip_prefix("event:") {
            name.trim().clone_into(&mut event);
        }
        let Some(data) = line.strip_prefix("data:") else {
            continue;
        };
        let data: Value = serde_json::from_str(data).context("could not read an event")?;
        match event.as_str() {
            "clicks" if json => println!("{data}"),
            "clicks" => println!("{}", told(&data)),
            "gap" => eprintln!("clicks may be missing here; the totals have them all"),
            "end" => return Ok(data["reason"].as_str().map(str::to_owned)),
            _ => {}
        }
    }
    Ok(None)
}

fn told(data: &Value) -> String {
    let count = |field: &str| data["counts"][field].as_u64().unwrap_or(0);
    let machines = count("bot") + count("prefetch") + count("head");
    let at = plain(data["at"].as_str().unwrap_or_default());
    format!("{at}  +{} people  +{machines} others", count("human"))
}
