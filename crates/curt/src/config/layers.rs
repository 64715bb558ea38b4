//! Default file, own file, environment and flags laid over each other.
//!
//! The default file holds every key, so it also says which keys exist and what type each has: a layer that names
//! anything else, or gives another type, is refused with the key's full name.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::ConfigError;
use super::hint::nearest;

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

/// Puts the text of a file over `settings`; what is wrong in it is left out and reported together.
pub(super) fn overlay_file(
    settings: &mut Table,
    text: &str,
    name: &str,
) -> Result<(), ConfigError> {
    let file: Table = text
        .parse()
        .map_err(|problem| ConfigError::new(syntax_error(name, text, &problem)))?;
    let mut mistakes = ConfigError::none();
    for (key, value) in leaves(&file) {
        mistakes.note(set(settings, &key, value).map_err(|problem| problem.within(name)));
    }
    mistakes.into_result()
}

/// Gives the setting, or every setting of that section, its default again. Returns whether that changed anything.
pub(super) fn reset(settings: &mut Table, setting: &str) -> bool {
    let section = format!("{setting}.");
    let before = leaves(settings);
    let mut is_changed = false;
    for (key, default) in leaves(&defaults()) {
        let is_named = key == setting || key.starts_with(&section);
        if is_named && before.get(&key) != Some(&default) {
            is_changed |= insert(settings, &key, default);
        }
    }
    is_changed
}

/// Where the mistake is and what it is. The line itself is not shown: it may hold a password.
fn syntax_error(name: &str, text: &str, problem: &toml::de::Error) -> String {
    let start = problem.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("{name} is not valid TOML: line {line}, column {column}")
}

/// The variable for a setting: `CURT_SERVER_LISTEN` for `server.listen`.
fn variable(key: &str) -> String {
    format!("CURT_{}", key.replace('.', "_").to_uppercase())
}

/// The variables that are settings.
pub(super) fn variables() -> BTreeSet<String> {
    leaves(&defaults())
        .into_keys()
        .map(|key| variable(&key))
        .collect()
}

/// Puts `CURT_…` variables over `settings`, as [`overlay_file`] does a file.
pub(super) fn overlay_environment(
    settings: &mut Table,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    let names: BTreeMap<String, String> = leaves(&defaults())
        .into_keys()
        .map(|key| (variable(&key), key))
        .collect();
    let mut mistakes = ConfigError::none();
    for (variable, text) in environment {
        if !variable.starts_with("CURT_") || NOT_SETTINGS.contains(&variable.as_str()) {
            continue;
        }
        mistakes.note(match names.get(&variable) {
            Some(key) => {
                set_text(settings, key, &text).map_err(|problem| problem.within(&variable))
            }
            None => {
                let hint = nearest(&variable, names.keys());
                Err(ConfigError::new(format!(
                    "the environment variable {variable} is not a setting{hint}"
                )))
            }
        });
    }
    mistakes.into_result()
}

/// Puts one `key=value` from the command line over `settings`.
pub(super) fn overlay_flag(settings: &mut Table, assignment: &str) -> Result<(), ConfigError> {
    let (key, text) = assignment
        .split_once('=')
        // Not repeated: it may be an address with a password.
        .ok_or_else(|| ConfigError::new("--set: write it as key=value"))?;
    set_text(settings, key.trim(), text.trim()).map_err(|problem| problem.within("--set"))
}

/// Text takes the type that the default has; a list is written with commas, or as in TOML.
fn set_text(settings: &mut Table, key: &str, text: &str) -> Result<(), ConfigError> {
    let wrong = |what| ConfigError::new(format!("{key}: {} is not {what}", quoted(text)));
    let value = match leaves(&defaults()).get(key) {
        Some(Value::Integer(_)) => {
            Value::Integer(text.parse().map_err(|_| wrong("a whole number"))?)
        }
        Some(Value::Boolean(_)) => {
            Value::Boolean(text.parse().map_err(|_| wrong("true or false"))?)
        }
        Some(Value::Float(_)) => Value::Float(text.parse().map_err(|_| wrong("a number"))?),
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

/// A list as TOML writes it, or the items between commas. A comma between the hosts of one address is none of these: what
/// follows an address and is not one belongs to it.
fn listed(text: &str) -> Value {
    // An IPv6 address begins with a bracket, too, and is no TOML.
    if text.trim_start().starts_with('[')
        && let Ok(table) = format!("list = {text}").parse::<Table>()
        && let Some(list) = table.get("list")
    {
        return list.clone();
    }
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
        (Value::Float(_), Value::Integer(number)) => Value::Float(number as f64),
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
    let items = value.as_array().into_iter().flatten();
    if let Some(other) = items.into_iter().find(|item| !item.is_str()) {
        let found = other.type_str();
        return Err(ConfigError::new(format!(
            "{key} must be a list of strings, and has {} {found} in it",
            article(found)
        )));
    }
    match insert(settings, key, value) {
        true => Ok(()),
        false => Err(ConfigError::new(format!("unknown setting {key:?}"))),
    }
}

/// Stores the value under its dotted name, and returns whether there is a place for it.
fn insert(settings: &mut Table, key: &str, value: Value) -> bool {
    let mut parts: Vec<&str> = key.split('.').collect();
    let Some(last) = parts.pop() else {
        return false;
    };
    let mut place = settings;
    for part in parts {
        let Some(Value::Table(inner)) = place.get_mut(part) else {
            return false;
        };
        place = inner;
    }
    place.insert(last.to_owned(), value);
    true
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    }
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
        let wrong = overlay_flag(&mut settings, "listen=x").unwrap_err();
        assert!(
            wrong.to_string().ends_with("did you mean server.listen?"),
            "{wrong}"
        );
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
    fn numbers_with_a_fraction_come_from_text_and_from_whole_ones() {
        let mut settings = defaults();
        overlay_flag(&mut settings, "clicks.cpu_share=0.5").unwrap();
        assert_eq!(settings["clicks"]["cpu_share"].as_float(), Some(0.5));
        overlay_file(&mut settings, "[clicks]\ncpu_share = 1", "f").unwrap();
        assert_eq!(settings["clicks"]["cpu_share"].as_float(), Some(1.0));
        assert!(overlay_flag(&mut settings, "clicks.cpu_share=all").is_err());
    }

    #[test]
    fn lists_come_from_commas_and_from_toml() {
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
        overlay_flag(&mut settings, r#"links.schemes=["https", "ftp"]"#).unwrap();
        assert_eq!(list(&settings, "links", "schemes"), ["https", "ftp"]);
        overlay_flag(&mut settings, "store.keys=[]").unwrap();
        assert!(list(&settings, "store", "keys").is_empty());
        overlay_flag(&mut settings, "server.own_hosts=[::1]:80,[::2]").unwrap();
        assert_eq!(
            list(&settings, "server", "own_hosts"),
            ["[::1]:80", "[::2]"]
        );
        let wrong = overlay_flag(&mut settings, "links.schemes=[1]").unwrap_err();
        assert!(wrong.to_string().contains("links.schemes"), "{wrong}");
    }
}
