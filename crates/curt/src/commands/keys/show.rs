use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::CellAlignment;
use curt_core::ports::Finding;
use curt_keys::{KeyCounts, KeyStatus};
use serde_json::{Value, json};

use crate::commands::terminal;
use crate::config::StoreSettings;

/// For a number that cannot be known from here.
const UNKNOWN: &str = "?";
const NOBODY: &str = "-";

/// A status, ready to be shown.
pub(super) struct Shown {
    status: KeyStatus,
    counts: Option<KeyCounts>,
    /// `false` only if that has been seen over several looks.
    balances: Option<bool>,
    alarms: Vec<String>,
    ledgers: Vec<String>,
    pools: Vec<String>,
}

pub(super) fn counts_only(counts: KeyCounts) -> Shown {
    Shown {
        status: KeyStatus::default(),
        counts: Some(counts),
        balances: Some(counts.balances()),
        alarms: Vec::new(),
        ledgers: Vec::new(),
        pools: Vec::new(),
    }
}

impl Shown {
    pub(super) fn new(
        status: KeyStatus,
        balances: Option<bool>,
        alarms: Vec<String>,
        store: &StoreSettings,
    ) -> Self {
        Self {
            counts: status.key_counts(),
            balances,
            status,
            alarms,
            ledgers: store.keys.iter().map(ToString::to_string).collect(),
            pools: store.pool.iter().map(ToString::to_string).collect(),
        }
    }

    pub(super) fn json(&self) -> Value {
        let ledgers = self.status.ledgers.iter().zip(&self.ledgers);
        let ledgers = ledgers.enumerate().map(|(shard, (ledger, address))| {
            json!({
                "shard": shard,
                "address": address,
                "minted": ledger.counts.map(|counts| counts.minted),
                "free": ledger.counts.map(|counts| counts.free),
                "open": ledger.counts.map(|counts| counts.open),
                "findings": ledger.findings.iter().map(|found| (found.name, found.count)).collect::<BTreeMap<_, _>>(),
                "owner": ledger.owner,
            })
        });
        let pools = self.status.pools.iter().zip(&self.pools);
        let pools = pools.enumerate().map(|(shard, (pool, address))| {
            json!({
                "shard": shard,
                "address": address,
                "keys": pool.depth,
                "owner": pool.owner,
            })
        });
        let processes = self.status.instances.iter().flatten().map(|process| {
            json!({
                "name": process.name,
                "who": process.who,
                "buffered": process.holdings.buffered,
                "in_transit": process.holdings.in_transit,
                "conflicts": process.conflicts,
                "fallbacks": process.fallbacks,
            })
        });
        let keys_by_stage = self.counts.map(|counts| {
            let stages = counts.stages();
            let stages = stages.map(|(stage, keys)| (stage.to_owned(), json!(keys)));
            stages.collect::<serde_json::Map<String, Value>>()
        });
        json!({
            "ledgers": ledgers.collect::<Vec<_>>(),
            "pools": pools.collect::<Vec<_>>(),
            "processes": processes.collect::<Vec<_>>(),
            "keys": keys_by_stage,
            "balances": self.balances,
            "audit": self.status.audit.as_ref().map(|audit| json!({
                "exact": audit.is_exact(),
                "on_links": audit.duplicates.on_links,
                "waiting_twice": audit.duplicates.waiting_twice,
            })),
            "alarms": self.alarms,
        })
    }

    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        // What an installation has not is left out, rather than shown as an empty table.
        if !self.status.ledgers.is_empty() {
            text += &self.ledger_table();
        }
        if !self.status.pools.is_empty() {
            text += &self.pool_table();
        }
        if self
            .status
            .instances
            .as_ref()
            .is_some_and(|all| !all.is_empty())
        {
            text += &self.process_table();
        }
        text += &self.stages_table();
        for alarm in &self.alarms {
            // Writing to a string does not fail.
            writeln!(text, "! {alarm}").ok();
        }
        text.trim_end().to_owned()
    }

    fn ledger_table(&self) -> String {
        let rows = self.status.ledgers.iter().zip(&self.ledgers);
        let rows = rows.enumerate().map(|(shard, (ledger, address))| {
            let counts = ledger.counts;
            [
                format!("keys-db-{shard}"),
                number(counts.map(|counts| counts.minted)),
                number(counts.map(|counts| counts.free)),
                number(counts.map(|counts| counts.open)),
                findings(&ledger.findings),
                owner(ledger.owner.as_deref()),
                address.clone(),
            ]
        });
        table(
            [
                "keys database",
                "minted",
                "free",
                "open",
                "findings",
                "keygen",
                "address",
            ],
            1..5,
            rows,
        )
    }

    fn pool_table(&self) -> String {
        let rows = self.status.pools.iter().zip(&self.pools);
        let rows = rows.enumerate().map(|(shard, (pool, address))| {
            [
                format!("keys-pool-{shard}"),
                number(pool.depth),
                owner(pool.owner.as_deref()),
                address.clone(),
            ]
        });
        table(["pool", "keys", "keysync", "address"], 1..2, rows)
    }

    fn process_table(&self) -> String {
        let rows = self.status.instances.iter().flatten().map(|process| {
            [
                process.who.to_string(),
                process.holdings.buffered.to_string(),
                process.holdings.in_transit.to_string(),
                process.conflicts.to_string(),
                process.fallbacks.to_string(),
            ]
        });
        let header = [
            "process",
            "buffered",
            "in_transit",
            "conflicts",
            "fallbacks",
        ];
        table(header, 1..5, rows)
    }

    fn stages_table(&self) -> String {
        let Some(counts) = &self.counts else {
            return "keys: not knowable from here, because not every stage answers (?)\n"
                .to_owned();
        };
        let rows = counts
            .stages()
            .map(|(stage, keys)| [stage.to_owned(), keys.to_string()]);
        let mut text = table(["stage", "keys"], 1..2, rows);
        if self.status.instances.is_none() && !self.status.ledgers.is_empty() {
            text.truncate(text.trim_end().len());
            text += "\n(buffered: in the memory of the server, as open batches tell)\n";
        }
        text
    }
}

fn findings(found: &[Finding]) -> String {
    let shown = found
        .iter()
        .map(|found| format!("{} {}", found.count, found.name));
    shown.collect::<Vec<_>>().join(", ")
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}

fn owner(owner: Option<&str>) -> String {
    owner.unwrap_or(NOBODY).to_owned()
}

fn table<const N: usize>(
    header: [&str; N],
    numbers: std::ops::Range<usize>,
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut table = terminal::table(header);
    rows.for_each(|row| {
        table.add_row(row);
    });
    for (at, column) in table.column_iter_mut().enumerate() {
        if numbers.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n\n")
}
