//! The one table of engines: how each is addressed, which cargo feature has it, and which settings it can serve.
//! Reading addresses, opening, `curt check`, error messages and `ARCHITECTURE.md` follow it.

/// An engine that ports can be served by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EngineKind {
    Sqlite,
    Postgres,
    Mysql,
    Cassandra,
    DynamoDb,
    Redis,
    Memcached,
    ZooKeeper,
    Kafka,
    Files,
    Hdfs,
    S3,
    Spool,
    Memory,
}

/// What an engine is wanted for: one setting of `[store]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Links,
    ShardMap,
    Accounts,
    Clicks,
    Stream,
    Counters,
    Cache,
    Invalidations,
    Quotas,
    Keys,
    Pool,
    Leases,
    Files,
    Cursor,
}

/// A row of the table.
struct EngineRow {
    kind: EngineKind,
    schemes: &'static [&'static str],
    /// How its addresses look.
    form: &'static str,
    rest: AddressRest,
    feature: Feature,
    serves: &'static [Part],
}

/// What follows the scheme in an engine's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressRest {
    Nothing,
    /// A file or folder of this machine.
    Path,
    /// Hosts, and what belongs to them.
    Url,
}

/// How an engine gets into a build.
enum Feature {
    Always,
    Named { name: &'static str, is_on: bool },
}

macro_rules! feature {
    ($name:literal) => {
        Feature::Named {
            name: $name,
            is_on: cfg!(feature = $name),
        }
    };
}

use Part::{
    Accounts, Cache, Clicks, Counters, Cursor, Files, Invalidations, Keys, Leases, Links, Pool,
    Quotas, ShardMap, Stream,
};

/// In the order of [`EngineKind`], in which error messages propose them.
const ENGINES: [EngineRow; 14] = [
    EngineRow {
        kind: EngineKind::Sqlite,
        schemes: &["sqlite"],
        form: "sqlite:PATH",
        rest: AddressRest::Path,
        feature: Feature::Always,
        serves: &[Links, ShardMap, Accounts, Clicks, Keys, Cursor],
    },
    EngineRow {
        kind: EngineKind::Postgres,
        schemes: &["postgres", "postgresql"],
        form: "postgres://…",
        rest: AddressRest::Url,
        feature: feature!("postgres"),
        serves: &[
            Links,
            ShardMap,
            Accounts,
            Clicks,
            Invalidations,
            Keys,
            Cursor,
        ],
    },
    EngineRow {
        kind: EngineKind::Mysql,
        schemes: &["mysql"],
        form: "mysql://…",
        rest: AddressRest::Url,
        feature: feature!("mysql"),
        serves: &[Keys],
    },
    EngineRow {
        kind: EngineKind::Cassandra,
        schemes: &["cassandra"],
        form: "cassandra://…",
        rest: AddressRest::Url,
        feature: feature!("cassandra"),
        serves: &[Links, Accounts, Clicks, Cursor],
    },
    EngineRow {
        kind: EngineKind::DynamoDb,
        schemes: &["dynamodb"],
        form: "dynamodb://…",
        rest: AddressRest::Url,
        feature: feature!("dynamodb"),
        serves: &[Links, Accounts, Clicks, Cursor],
    },
    EngineRow {
        kind: EngineKind::Redis,
        schemes: &["redis", "rediss", "redis+sentinel", "rediss+sentinel"],
        form: "redis://…, rediss://…, redis+sentinel://…",
        rest: AddressRest::Url,
        feature: feature!("redis"),
        serves: &[Counters, Cache, Invalidations, Quotas, Pool, Leases],
    },
    EngineRow {
        kind: EngineKind::Memcached,
        schemes: &["memcached"],
        form: "memcached://…",
        rest: AddressRest::Url,
        feature: feature!("memcached"),
        serves: &[Cache],
    },
    EngineRow {
        kind: EngineKind::ZooKeeper,
        schemes: &["zookeeper"],
        form: "zookeeper://…",
        rest: AddressRest::Url,
        feature: feature!("zookeeper"),
        serves: &[ShardMap, Leases, Cursor],
    },
    EngineRow {
        kind: EngineKind::Kafka,
        schemes: &["kafka"],
        form: "kafka://…/TOPIC",
        rest: AddressRest::Url,
        feature: feature!("kafka"),
        serves: &[Stream],
    },
    EngineRow {
        kind: EngineKind::Files,
        schemes: &["file"],
        form: "file:FOLDER",
        rest: AddressRest::Path,
        feature: feature!("objects"),
        serves: &[Files],
    },
    EngineRow {
        kind: EngineKind::Hdfs,
        schemes: &["hdfs"],
        form: "hdfs://…",
        rest: AddressRest::Url,
        feature: feature!("objects"),
        serves: &[Files],
    },
    EngineRow {
        kind: EngineKind::S3,
        schemes: &["s3"],
        form: "s3://…",
        rest: AddressRest::Url,
        feature: feature!("objects"),
        serves: &[Files],
    },
    EngineRow {
        kind: EngineKind::Spool,
        schemes: &["spool"],
        form: "spool:FOLDER",
        rest: AddressRest::Path,
        feature: Feature::Always,
        serves: &[Stream],
    },
    EngineRow {
        kind: EngineKind::Memory,
        schemes: &["memory"],
        form: "memory:",
        rest: AddressRest::Nothing,
        feature: Feature::Always,
        serves: &[
            Links, ShardMap, Accounts, Clicks, Quotas, Keys, Leases, Files, Cursor,
        ],
    },
];

const _: () = {
    let mut number = 0;
    while number < ENGINES.len() {
        assert!(ENGINES[number].kind as usize == number);
        number += 1;
    }
};

/// Engines that other versions may serve; naming one says so instead of "unknown".
const PLANNED: [&str; 1] = ["etcd"];

impl EngineKind {
    /// Finds the engine for a scheme, if it can serve the part. The error names those that can.
    pub(super) fn find(scheme: &str, part: Part) -> Result<Self, String> {
        let found = ENGINES.iter().find(|row| row.schemes.contains(&scheme));
        match found {
            Some(row) => row.kind.require_serves(part).map(|()| row.kind),
            None if PLANNED.contains(&scheme) => Err(format!(
                "this version cannot use {scheme}: use {}",
                part.forms()
            )),
            None => Err(format!("unknown scheme {scheme:?}: use {}", part.forms())),
        }
    }

    #[must_use]
    pub(crate) fn serves(self, part: Part) -> bool {
        self.row().serves.contains(&part)
    }

    /// Refuses an engine that cannot serve the part.
    pub(super) fn require_serves(self, part: Part) -> Result<(), String> {
        match self.serves(part) {
            true => Ok(()),
            false => Err(format!(
                "{} cannot be used here: use {}",
                self.row().schemes[0],
                part.forms()
            )),
        }
    }

    /// Refuses an engine that is not in this build.
    pub(super) fn require_built(self) -> Result<(), String> {
        let row = self.row();
        match row.feature {
            Feature::Named { name, is_on: false } => Err(format!(
                "this build has no {}: build it with the cargo feature {name:?}",
                row.schemes[0]
            )),
            _ => Ok(()),
        }
    }

    /// How its addresses look.
    pub(super) fn form(self) -> &'static str {
        self.row().form
    }

    pub(super) fn address_rest(self) -> AddressRest {
        self.row().rest
    }

    /// Whether processes on other machines, or only on this one, can use the same. A folder may be a mounted one.
    #[must_use]
    pub(crate) fn is_shared(self) -> bool {
        self == Self::Files || self.address_rest() == AddressRest::Url
    }

    /// Whether it is a database on a server, whose tables `curt migrate` makes.
    #[must_use]
    pub(crate) fn has_tables_elsewhere(self) -> bool {
        matches!(
            self,
            Self::Postgres | Self::Mysql | Self::Cassandra | Self::DynamoDb
        )
    }

    fn row(self) -> &'static EngineRow {
        &ENGINES[self as usize]
    }
}

impl Part {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 14] = [
        Links,
        ShardMap,
        Accounts,
        Clicks,
        Stream,
        Counters,
        Cache,
        Invalidations,
        Quotas,
        Keys,
        Pool,
        Leases,
        Files,
        Cursor,
    ];

    /// The setting that chooses its engine.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Links => "store.links",
            ShardMap => "store.shard_map",
            Accounts => "store.accounts",
            Clicks => "store.clicks",
            Stream => "store.stream",
            Counters => "store.counters",
            Cache => "store.cache",
            Invalidations => "store.invalidations",
            Quotas => "store.quotas",
            Keys => "store.keys",
            Pool => "store.pool",
            Leases => "store.leases",
            Files => "store.files",
            Cursor => "store.cursor",
        }
    }

    /// The addresses that can serve it, as an operator writes them.
    pub(super) fn forms(self) -> String {
        let rows = ENGINES.iter().filter(|row| row.serves.contains(&self));
        let mut forms: Vec<&str> = rows.map(|row| row.form).collect();
        match self {
            Cache | Pool => forms.push("[] for none"),
            Counters | Invalidations => forms.push("\"\" for none"),
            _ => {}
        }
        forms.join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table as `ARCHITECTURE.md` has it.
    fn print_table() -> String {
        let mut lines = vec!["| engine | feature |".to_owned(), "|---|---|".to_owned()];
        for part in Part::ALL {
            lines[0] += &format!(" `{}` |", part.setting());
            lines[1] += "---|";
        }
        for row in &ENGINES {
            let feature = match row.feature {
                Feature::Always => "always there",
                Feature::Named { name, .. } => name,
            };
            let mut line = format!("| `{}` | {feature} |", row.form);
            for part in Part::ALL {
                line += if row.serves.contains(&part) {
                    " ✓ |"
                } else {
                    "  |"
                };
            }
            lines.push(line);
        }
        lines.join("\n")
    }

    #[test]
    fn the_architecture_shows_the_table() {
        let table = print_table();
        let shown = include_str!("../../../../ARCHITECTURE.md");
        assert!(shown.contains(&table), "ARCHITECTURE.md lacks\n{table}");
    }
}
