//! Settings that stand in files of their own, as service managers and containers hand out secrets: `CURT_STORE_LINKS_FILE`
//! names a file that holds what `CURT_STORE_LINKS` would.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;

use super::ConfigError;

/// Larger files are no settings.
const FILE_BYTES_MAX: u64 = 64 * 1_024;
const SUFFIX: &str = "_FILE";

/// Replaces each `NAME_FILE`, where `NAME` is among `known`, by `NAME` with the content of the file.
pub(super) fn read_named(
    environment: impl Iterator<Item = (String, String)>,
    known: &BTreeSet<String>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let given: Vec<(String, String)> = environment.collect();
    let is_given = |name: &str| given.iter().any(|(variable, _)| variable == name);
    let mut read = Vec::with_capacity(given.len());
    for (variable, value) in &given {
        let named = variable.strip_suffix(SUFFIX);
        let Some(name) = named.filter(|name| known.contains(*name) && !known.contains(variable))
        else {
            read.push((variable.clone(), value.clone()));
            continue;
        };
        if is_given(name) {
            let problem = format!("{name} and {variable} are both set: remove one of them");
            return Err(ConfigError::new(problem));
        }
        let content = content(value).map_err(|problem| {
            ConfigError::new(format!("{variable}: could not read {value}: {problem}"))
        })?;
        read.push((name.to_owned(), content));
    }
    Ok(read)
}

/// The text of a file without the line feed that editors end it with. Errors repeat nothing of it.
fn content(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let bytes = read.map_err(|error| error.to_string())?;
    if bytes as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ConfigArgs;
    use crate::config::Config;

    const ADDRESS: &str = "postgres://ada:s%2Fcret@db.example/curt?sslmode=require";

    fn load(environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let pairs = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        crate::config::sound(Config::from_sources(&ConfigArgs::default(), pairs))
    }

    #[test]
    fn a_setting_may_stand_in_a_file_and_stays_masked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("links");
        for end in ["", "\n"] {
            std::fs::write(&path, format!("{ADDRESS}{end}")).unwrap();
            let config = load(&[("CURT_STORE_LINKS_FILE", path.to_str().unwrap())]).unwrap();
            assert_eq!(config.store.links.secret_text(), ADDRESS);
            let shown = config.shown().to_string();
            assert!(!shown.contains("cret"), "{shown}");
            assert!(shown.contains("db.example"), "{shown}");
        }
    }

    #[test]
    fn what_cannot_be_read_names_variable_and_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        std::fs::write(&path, "x".repeat(70_000)).unwrap();
        let large = path.to_str().unwrap();
        for (environment, said) in [
            (
                vec![("CURT_STORE_LINKS_FILE", "/nowhere/secret")],
                "CURT_STORE_LINKS_FILE: could not read /nowhere/secret: No such file",
            ),
            (
                vec![("CURT_STORE_LINKS_FILE", large)],
                "larger than 65536 bytes",
            ),
            (
                vec![
                    ("CURT_STORE_LINKS", ADDRESS),
                    ("CURT_STORE_LINKS_FILE", large),
                ],
                "CURT_STORE_LINKS and CURT_STORE_LINKS_FILE are both set",
            ),
            (
                vec![("CURT_STORE_LINK_FILE", large)],
                "CURT_STORE_LINK_FILE is not a setting",
            ),
        ] {
            let problem = load(&environment).unwrap_err().to_string();
            assert!(problem.contains(said), "{problem}");
            assert!(!problem.contains("s%2Fcret"), "{problem}");
        }
    }
}
