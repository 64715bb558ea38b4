//! Default file, own file, environment and flags laid over each other.
//!
//! The default file holds every key, so it also says which keys exist and what type each has: a layer that names
//! anything else, or gives another type, is refused with the key's full name.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::ConfigError;

const DEFAULT: &str = include_str!("../../config/default.toml");

/// Environment variables of the same prefix that are not settings.
const NOT_SETTINGS: [&str; 3] = ["CURT_CONFIG", "CURT_URL", "CURT_API_KEY"];

/// The commented default file.
pub(crate) fn default_text() -> &'static str {
    DEFAULT
}

#[expect(
    clippy::expect_used,
    reason = "the file is part of the binary and a test parses it"
)]
pub(super) fn defaults() -> Table {
    DEFAULT.parse().expect("the embedded default.toml is valid")
}

/// Dotted name and value of every leaf.
pub(super) fn leaves(table: &Table) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    collect("", table, &mut found);
    found
}

fn collect(prefix: &str, table: &Table, found: &mut BTreeMap<String, Value>) {
    for (name, value) in table {
        let full = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            Value::Table(inner) => collect(&full, inner, found),
            leaf => {
                found.insert(full, leaf.clone());
            }
        }
    }
}

/// Puts the text of a file over `settings`.
pub(super) fn overlay_file(
    settings: &mut Table,
    text: &str,
    name: &str,
) -> Result<(), ConfigError> {
    let file: Table = text
        .parse()
        .map_err(|problem| ConfigError::new(syntax_error(name, text, &problem)))?;
    for (key, value) in leaves(&file) {
        set(settings, &key, value).map_err(|problem| problem.within(name))?;
    }
    Ok(())
}

/// Where the mistake is and what it is. The line itself is not shown: it may hold a password.
fn syntax_error(name: &str, text: &str, problem: &toml::de::Error) -> String {
    let start = problem.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("{name} is not valid TOML: line {line}, column {column}")
}

/// Puts `CURT_…` variables over `settings`.
pub(super) fn overlay_environment(
    settings: &mut Table,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    let names: BTreeMap<String, String> = leaves(&defaults())
        .into_keys()
        .map(|key| {
            (
                format!("CURT_{}", key.replace('.', "_").to_uppercase()),
                key,
            )
        })
        .collect();
    for (variable, text) in environment {
        if !variable.starts_with("CURT_") || NOT_SETTINGS.contains(&variable.as_str()) {
            continue;
        }
        let Some(key) = names.get(&variable) else {
            let hint = nearest(&variable, names.keys());
            return Err(ConfigError::new(format!(
                "the environment variable {variable} is not a setting{hint}"
            )));
        };
        set_text(settings, key, &text).map_err(|problem| problem.within(&variable))?;
    }
    Ok(())
}

/// Puts one `key=value` from the command line over `settings`.
pub(super) fn overlay_flag(settings: &mut Table, assignment: &str) -> Result<(), ConfigError> {
    let (key, text) = assignment
        .split_once('=')
        // Not repeated: it may be an address with a password.
        .ok_or_else(|| ConfigError::new("--set: write it as key=value"))?;
    set_text(settings, key.trim(), text.trim()).map_err(|problem| problem.within("--set"))
}

/// Text takes the type that the default has; a list is separated by commas.
fn set_text(settings: &mut Table, key: &str, text: &str) -> Result<(), ConfigError> {
    let wrong = |what| ConfigError::new(format!("{key}: {} is not {what}", quoted(text)));
    let value = match leaves(&defaults()).get(key) {
        Some(Value::Integer(_)) => {
            Value::Integer(text.parse().map_err(|_| wrong("a whole number"))?)
        }
        Some(Value::Boolean(_)) => {
            Value::Boolean(text.parse().map_err(|_| wrong("true or false"))?)
        }
        Some(Value::Array(_)) => listed(text),
        _ => Value::String(text.to_owned()),
    };
    set(settings, key, value)
}

/// The text for an error, unless it looks like something that holds a password: a setting may stand in another's place.
pub(super) fn quoted(text: &str) -> String {
    match text.contains(['@', '=']) {
        true => "what was given".to_owned(),
        false => format!("{text:?}"),
    }
}

/// The items between the commas. A comma between the hosts of one address is none of these: what follows an address and
/// is not one belongs to it.
fn listed(text: &str) -> Value {
    let mut items: Vec<String> = Vec::new();
    for item in text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        match items.last_mut() {
            Some(address) if address.contains("://") && !item.contains("://") => {
                *address += ",";
                *address += item;
            }
            _ => items.push(item.to_owned()),
        }
    }
    Value::Array(items.into_iter().map(Value::String).collect())
}

/// Settings of earlier versions that have another name now.
const RENAMED: &[(&str, &str)] = &[
    ("clicks.spool_reserve", "clicks.disk_reserve"),
    ("clicks.spool", "store.stream"),
    ("clicks.visits_kept", "clicks.retention"),
    ("clicks.visits_max", "clicks.retention_size"),
    ("clicks.counts_kept", "clicks.rollup_retention"),
    ("store.locks", "store.leases"),
    ("keys.lock_ttl", "keys.lease_ttl"),
    ("cache.miss_entries", "cache.negative_entries"),
    ("cache.miss_ttl", "cache.negative_ttl"),
];

fn set(settings: &mut Table, key: &str, value: Value) -> Result<(), ConfigError> {
    let known = leaves(&defaults());
    let Some(default) = known.get(key) else {
        if let Some((_, now)) = RENAMED.iter().find(|(before, _)| *before == key) {
            return Err(ConfigError::new(format!("{key} is called {now} now")));
        }
        let hint = nearest(key, known.keys());
        return Err(ConfigError::new(format!("unknown setting {key:?}{hint}")));
    };
    // One address may stand for a list of one.
    let value = match (default, value) {
        (Value::Array(_), Value::String(text)) => listed(&text),
        (_, value) => value,
    };
    if default.type_str() != value.type_str() {
        return Err(ConfigError::new(format!(
            "{key} must be {} {}, not {} {}",
            article(default.type_str()),
            default.type_str(),
            article(value.type_str()),
            value.type_str()
        )));
    }
    if value.as_integer().is_some_and(|number| number < 0) {
        return Err(ConfigError::new(format!("{key} must not be negative")));
    }
    let mut parts: Vec<&str> = key.split('.').collect();
    let Some(last) = parts.pop() else {
        return Ok(());
    };
    let mut place = settings;
    for part in parts {
        let Some(Value::Table(inner)) = place.get_mut(part) else {
            return Err(ConfigError::new(format!("unknown setting {key:?}")));
        };
        place = inner;
    }
    place.insert(last.to_owned(), value);
    Ok(())
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    }
}

/// A hint at the known name that shares the most letters in order, if one comes close.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, candidate)| format!(": did you mean {candidate}?"))
        .unwrap_or_default()
}

/// Levenshtein distance by bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_layer_wins() {
        let mut settings = defaults();
        overlay_file(
            &mut settings,
            "[server]\nlisten = \"a:1\"\nworkers = 3",
            "f",
        )
        .unwrap();
        let environment = [("CURT_SERVER_LISTEN".to_owned(), "b:2".to_owned())];
        overlay_environment(&mut settings, environment.into_iter()).unwrap();
        overlay_flag(&mut settings, "server.workers=4").unwrap();
        assert_eq!(settings["server"]["listen"].as_str(), Some("b:2"));
        assert_eq!(settings["server"]["workers"].as_integer(), Some(4));
    }

    #[test]
    fn unknown_names_are_refused_with_a_hint() {
        let mut settings = defaults();
        let wrong =
            overlay_file(&mut settings, "[server]\nlisten_ = \"a\"", "my.toml").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "my.toml: unknown setting \"server.listen_\": did you mean server.listen?"
        );
        let wrong = overlay_environment(
            &mut settings,
            [("CURT_SERVR_LISTEN".into(), "x".into())].into_iter(),
        );
        assert!(
            wrong
                .unwrap_err()
                .to_string()
                .contains("did you mean CURT_SERVER_LISTEN?")
        );
        assert!(overlay_flag(&mut settings, "nonsense").is_err());
        for (before, now) in RENAMED {
            let renamed = overlay_flag(&mut settings, &format!("{before}=1")).unwrap_err();
            assert!(
                renamed
                    .to_string()
                    .contains(&format!("{before} is called {now} now"))
            );
            assert!(leaves(&settings).contains_key(*now), "{now}");
        }
    }

    #[test]
    fn wrong_types_name_the_key() {
        let mut settings = defaults();
        let wrong = overlay_file(&mut settings, "[server]\nworkers = \"two\"", "f").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "f: server.workers must be an integer, not a string"
        );
        let wrong = overlay_flag(&mut settings, "server.workers=two").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "--set: server.workers: \"two\" is not a whole number"
        );
    }

    #[test]
    fn lists_come_from_commas() {
        let mut settings = defaults();
        overlay_flag(&mut settings, "links.schemes=https, mailto").unwrap();
        let list = |settings: &Table, section: &str, key: &str| -> Vec<String> {
            let items = settings[section][key].as_array().unwrap().iter();
            items
                .map(|item| item.as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(list(&settings, "links", "schemes"), ["https", "mailto"]);
        overlay_flag(
            &mut settings,
            "store.keys=postgres://a:1,b:2/x, postgres://c/y",
        )
        .unwrap();
        let shards = ["postgres://a:1,b:2/x", "postgres://c/y"];
        assert_eq!(list(&settings, "store", "keys"), shards);
        overlay_flag(&mut settings, "store.keys=").unwrap();
        assert!(list(&settings, "store", "keys").is_empty());
        overlay_file(&mut settings, "[store]\nkeys = \"mysql://a/x\"", "f").unwrap();
        assert_eq!(list(&settings, "store", "keys"), ["mysql://a/x"]);
    }
}
