//! What an operator writes to choose an engine: `sqlite:curt.db`, `postgres://…`, `redis://…`, `memory:`.
//!
//! An address may hold a password. It is never shown whole: `Display` and `Debug` leave out everything that is secret.

use std::fmt;
use std::path::{Path, PathBuf};

use super::masking;
use super::table::{AddressRest, EngineKind, Part};

/// Where an engine is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct EngineAddress {
    kind: EngineKind,
    place: Place,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Place {
    Memory,
    Path(PathBuf),
    Remote(String),
}

impl EngineAddress {
    pub(crate) const MEMORY: Self = Self {
        kind: EngineKind::Memory,
        place: Place::Memory,
    };

    /// Reads an address for one part of the product; relative paths start at `data_dir`. The error says what would be
    /// right and never repeats a password.
    pub(crate) fn parse(text: &str, part: Part, data_dir: &Path) -> Result<Self, String> {
        let (scheme, rest) = match text.split_once(':') {
            // What is no scheme may be part of a secret.
            Some((scheme, rest)) if masking::is_scheme(scheme) => (scheme, rest),
            _ => {
                return Err(format!(
                    "it is not a store address: one begins with a scheme: use {}",
                    part.forms()
                ));
            }
        };
        let kind = EngineKind::find(scheme, part)?;
        let place = match kind.address_rest() {
            AddressRest::Nothing if rest.is_empty() => Place::Memory,
            AddressRest::Nothing => return Err(format!("nothing follows {scheme}:")),
            AddressRest::Path if rest.is_empty() => {
                return Err(format!("{scheme}: names no place: write {}", kind.form()));
            }
            AddressRest::Path => Place::Path(data_dir.join(rest)),
            AddressRest::Url if masking::has_unencoded_password(text) => {
                return Err(
                    "the password cannot be told from the rest: write / as %2F, @ as %40, ? as %3F and # as %23"
                        .to_owned(),
                );
            }
            AddressRest::Url if rest.starts_with("//") => Place::Remote(text.to_owned()),
            AddressRest::Url => return Err(format!("write it as {scheme}://…")),
        };
        Ok(Self { kind, place })
    }

    #[must_use]
    pub(crate) fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Whether the engine there spreads links over its servers by itself, and serves links alone.
    #[must_use]
    pub(crate) fn spreads_by_itself(&self) -> bool {
        let options = self.secret_text().split_once('?');
        let mut options = options.into_iter().flat_map(|(_, rest)| rest.split('&'));
        self.kind == EngineKind::Postgres && options.any(|option| option == "sharding=engine")
    }

    /// A file of SQLite.
    #[must_use]
    pub(crate) fn sqlite(path: PathBuf) -> Self {
        Self {
            kind: EngineKind::Sqlite,
            place: Place::Path(path),
        }
    }

    /// The file or folder of an engine that has one.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        match &self.place {
            Place::Path(path) => path,
            Place::Memory | Place::Remote(_) => Path::new(""),
        }
    }

    /// The address as it was written, with its secrets.
    #[must_use]
    pub(crate) fn secret_text(&self) -> &str {
        match &self.place {
            Place::Remote(text) => text,
            Place::Memory | Place::Path(_) => "",
        }
    }
}

/// Scheme, hosts and path; neither the account nor the parameters.
impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Memory => f.write_str("memory:"),
            Place::Path(path) => write!(f, "{}", path.display()),
            Place::Remote(text) => f.write_str(&masking::without_account(text)),
        }
    }
}

impl fmt::Debug for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EngineAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, part: Part) -> Result<EngineAddress, String> {
        EngineAddress::parse(text, part, Path::new("/var/lib/curt"))
    }

    #[test]
    fn relative_paths_start_at_the_data_folder() {
        for (text, part, path) in [
            ("sqlite:curt.db", Part::Links, "/var/lib/curt/curt.db"),
            ("sqlite:/srv/a.db", Part::Keys, "/srv/a.db"),
            ("file:keys", Part::Files, "/var/lib/curt/keys"),
        ] {
            assert_eq!(parse(text, part).unwrap().path(), Path::new(path));
        }
        assert_eq!(parse("memory:", Part::Leases), Ok(EngineAddress::MEMORY));
    }

    #[test]
    fn a_wrong_address_says_what_is_right() {
        for (text, part, said) in [
            ("curt.db", Part::Links, "begins with a scheme"),
            ("sqlite:", Part::Links, "names no place"),
            ("zookeeper://h", Part::Links, "use sqlite:PATH or postgres"),
            ("mongo:x", Part::Links, "unknown scheme \"mongo\""),
            ("etcd://h", Part::Links, "this version cannot use etcd"),
            (
                "memcached://h",
                Part::Links,
                "memcached cannot be used here",
            ),
            ("memory:x", Part::Leases, "nothing follows"),
            ("redis:h", Part::Pool, "redis://"),
            ("mysql://h", Part::Cursor, "cannot be used here"),
        ] {
            let problem = parse(text, part).unwrap_err();
            assert!(problem.contains(said), "{text}: {problem}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let text = "redis+sentinel://me:p%40ss@h1,h2:26380/main/0?sentinel_password=hidden";
        let address = parse(text, Part::Pool).unwrap();
        assert_eq!(address.to_string(), "redis+sentinel://h1,h2:26380/main/0");
        let shown = format!("{address:?}");
        assert!(
            !shown.contains("p%40ss") && !shown.contains("hidden"),
            "{shown}"
        );
        assert_eq!(address.secret_text(), text);
    }
}
