//! Many links at once: several targets, or a line each on standard input.

use anyhow::Context as _;
use curt_core::limits::BULK_LINKS_MAX;
use serde_json::{Map, Value, json};
use ureq::http::StatusCode;

use crate::commands::client::{self, Client};
use crate::exit_code::{CommandError, ExitReason};

/// Links with a password that the server takes in one request.
const PASSWORDS_MAX: usize = 20;
/// A request has at most 4 MiB, and a target 8 KiB.
const REQUEST_BYTES_MAX: usize = 3 << 20;
/// Longer lines are no target, and not kept in memory.
const LINE_BYTES_MAX: usize = 64 << 10;

/// One link to be made, and how messages name it.
pub(super) struct Row {
    name: String,
    target: String,
    alias: Option<String>,
}

impl Row {
    pub(super) fn of_argument(target: String) -> Self {
        Self {
            name: target.clone(),
            target,
            alias: None,
        }
    }
}

/// Reads a target per line, and behind it, after a space, the alias that it may have. Empty lines and those that begin
/// with # are passed over.
pub(super) fn read_rows(input: impl std::io::BufRead) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (number, line) in input.lines().enumerate() {
        let line = line.context("could not read standard input")?;
        let name = format!("line {}", number + 1);
        let mut words = line.split_whitespace();
        let (target, alias) = (words.next(), words.next());
        let Some(target) = target.filter(|word| !word.starts_with('#')) else {
            continue;
        };
        if words.next().is_some() || line.len() > LINE_BYTES_MAX {
            let message = format!("{name}: write a target and, if it is to have one, an alias");
            return Err(CommandError::new(ExitReason::Refused, message).into());
        }
        rows.push(Row {
            name,
            target: target.to_owned(),
            alias: alias.map(str::to_owned),
        });
    }
    Ok(rows)
}

pub(super) fn stdin_rows() -> anyhow::Result<Vec<Row>> {
    read_rows(std::io::stdin().lock())
}

/// Makes the links in as few requests as the server allows, each with `fields`, and prints a short URL for each, in
/// order. What is refused is told on standard error; the others are made.
pub(super) fn create(
    client: &Client,
    rows: &[Row],
    fields: &Map<String, Value>,
    json: bool,
) -> anyhow::Result<()> {
    let mut all = Vec::new();
    let mut failed = 0;
    for (rows, links) in requests(rows, fields) {
        let answer = client.post(&["links", "bulk"], &json!({ "links": links }))?;
        let results = answer["results"].as_array().map_or(&[][..], Vec::as_slice);
        for (row, result) in rows.iter().zip(results) {
            let link = &result["link"];
            match link["short_url"].as_str() {
                Some(short) if !json => println!("{short}"),
                Some(_) => {}
                None => {
                    failed += 1;
                    let status = result["status"].as_u64().unwrap_or_default();
                    let status = u16::try_from(status).ok();
                    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
                    let problem = &result["problem"];
                    let why = client::explain(status.unwrap_or_default(), problem, true);
                    eprintln!("curt: {}: {why}", row.name);
                }
            }
        }
        all.extend(results.iter().cloned());
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&all)?);
    }
    if failed > 0 {
        let message = format!("{failed} of {} links were refused", rows.len());
        return Err(CommandError::new(ExitReason::Refused, message).into());
    }
    Ok(())
}

/// Rows of one request with their bodies.
fn requests<'r>(rows: &'r [Row], fields: &Map<String, Value>) -> Vec<(&'r [Row], Vec<Value>)> {
    let most = match fields.contains_key("password") {
        true => PASSWORDS_MAX,
        false => BULK_LINKS_MAX,
    };
    let each = Value::from(fields.clone()).to_string().len();
    let mut requests = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take(most).take_while(|row| {
            bytes += each + row.target.len() + 128;
            bytes <= REQUEST_BYTES_MAX
        });
        let (now, later) = rest.split_at(fitting.count().max(1));
        let links = now.iter().map(|row| body(row, fields.clone())).collect();
        requests.push((now, links));
        rest = later;
    }
    requests
}

fn body(row: &Row, mut fields: Map<String, Value>) -> Value {
    fields.insert("target".to_owned(), row.target.clone().into());
    if let Some(alias) = &row.alias {
        fields.insert("alias".to_owned(), alias.clone().into());
    }
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_targets_with_an_alias_or_without() {
        let text = "# mine\nhttps://example.com/\n\nexample.com/a plan\n";
        let rows = read_rows(text.as_bytes()).unwrap();
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.target.as_str(), row.alias.as_deref()))
            .collect();
        let plan = ("line 4", "example.com/a", Some("plan"));
        assert_eq!(found, [("line 2", "https://example.com/", None), plan]);
        let wrong = read_rows("https://a.example one two".as_bytes()).err();
        assert!(wrong.is_some_and(|why| why.to_string().starts_with("line 1: ")));
    }

    #[test]
    fn requests_are_as_large_as_the_server_takes() {
        let rows: Vec<Row> = (0..2_500)
            .map(|number| Row::of_argument(format!("https://example.com/{number}")))
            .collect();
        let sizes = |fields: &Map<String, Value>| -> Vec<usize> {
            let made = requests(&rows, fields);
            made.iter().map(|(rows, _)| rows.len()).collect()
        };
        assert_eq!(sizes(&Map::new()), [1_000, 1_000, 500]);
        let secret = Map::from_iter([("password".to_owned(), "s".into())]);
        assert_eq!(sizes(&secret).len(), 125);
        let long = Row::of_argument("x".repeat(8_000));
        let long: Vec<Row> = std::iter::repeat_with(|| Row::of_argument(long.target.clone()))
            .take(1_000)
            .collect();
        let made = requests(&long, &Map::new());
        assert!(made.len() > 2 && made.iter().map(|(rows, _)| rows.len()).sum::<usize>() == 1_000);
    }
}
