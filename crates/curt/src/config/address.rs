//! The engine behind a port, chosen by a URL.

use std::path::{Path, PathBuf};

/// A database for links, keys, cursors and accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite(PathBuf),
    Memory,
}

/// Where key files lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    Folder(PathBuf),
    Memory,
}

/// Schemes that later versions serve; naming one now says so instead of "unknown".
const PLANNED: [&str; 12] = [
    "postgres",
    "mysql",
    "cassandra",
    "dynamodb",
    "redis",
    "redis+sentinel",
    "memcached",
    "zookeeper",
    "kafka",
    "hdfs",
    "s3",
    "etcd",
];

impl Database {
    pub(super) fn parse(text: &str, data_dir: &Path) -> Result<Self, String> {
        match split(text)? {
            ("sqlite", "") => Err(format!("{text:?} names no file: write sqlite:curt.db")),
            ("sqlite", path) => Ok(Self::Sqlite(data_dir.join(path))),
            ("memory", "") => Ok(Self::Memory),
            (scheme, _) => Err(unknown(scheme, "sqlite:PATH or memory:")),
        }
    }
}

impl Files {
    pub(super) fn parse(text: &str, data_dir: &Path) -> Result<Self, String> {
        match split(text)? {
            ("file", "") => Err(format!("{text:?} names no folder: write file:keys")),
            ("file", path) => Ok(Self::Folder(data_dir.join(path))),
            ("memory", "") => Ok(Self::Memory),
            (scheme, _) => Err(unknown(scheme, "file:FOLDER or memory:")),
        }
    }
}

/// Ports that only memory serves in this version.
pub(super) fn memory_only(text: &str) -> Result<(), String> {
    match split(text)? {
        ("memory", "") => Ok(()),
        (scheme, _) => Err(unknown(scheme, "memory:")),
    }
}

fn split(text: &str) -> Result<(&str, &str), String> {
    text.split_once(':').ok_or_else(|| {
        format!("{text:?} is not a store address: it begins with a scheme, such as sqlite:curt.db")
    })
}

fn unknown(scheme: &str, known: &str) -> String {
    if PLANNED.contains(&scheme) {
        format!("this build cannot use {scheme} here yet: use {known}")
    } else {
        format!("unknown scheme {scheme:?}: use {known}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_start_at_the_data_folder() {
        let dir = Path::new("/var/lib/curt");
        assert_eq!(
            Database::parse("sqlite:curt.db", dir),
            Ok(Database::Sqlite("/var/lib/curt/curt.db".into()))
        );
        assert_eq!(
            Database::parse("sqlite:/srv/a.db", dir),
            Ok(Database::Sqlite("/srv/a.db".into()))
        );
        assert_eq!(
            Files::parse("file:keys", dir),
            Ok(Files::Folder("/var/lib/curt/keys".into()))
        );
        assert_eq!(Database::parse("memory:", dir), Ok(Database::Memory));
    }

    #[test]
    fn a_wrong_address_says_what_is_right() {
        let dir = Path::new("d");
        for (text, part) in [
            ("curt.db", "begins with a scheme"),
            ("sqlite:", "names no file"),
            ("postgres://h/db", "cannot use postgres here yet"),
            ("mongo:x", "unknown scheme \"mongo\""),
            ("memory:x", "unknown scheme"),
        ] {
            let problem = Database::parse(text, dir).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
