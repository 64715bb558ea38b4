//! The seven ways to come by a key, each assembled from the stages of the line.
//!
//! | strategy | buffer filled from | made ahead by keygen | moved by keysync |
//! |---|---|---|---|
//! | `pool`, `status` | the ledgers, or the fullest pool shard where there are pools | random keys into the ledgers | ledgers to pools |
//! | `file` | claimed blocks of key files | key files | – |
//! | `snowflake`, `sequence` | ids under a durable reservation | – | – |
//! | `claim` | no buffer: the link store claims a row | free rows | – |
//! | `hash` | no buffer: computed from the request | – | – |

mod claim;
mod hash;
mod ledger;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use self::claim::RowSource;
use self::hash::{HashKeys, HashSource};
use crate::error::KeySupplyError;
use crate::ids::IdSource;
use crate::lease::HeldLeases;
use crate::metrics::KeyMetrics;
use crate::mint::{FileFill, Minter, RowFill};
use crate::pace::Nudges;
use crate::ports::KeyPorts;
use crate::preload::{Preload, Series};
use crate::settings::{KeySettings, Strategy};
use crate::source::{KeyProducer, KeySource};

/// A source, and the background work behind it.
pub(crate) type Opened = (Arc<dyn KeySource>, Option<Arc<dyn KeyProducer>>);

pub(crate) fn open(
    settings: &KeySettings,
    ports: KeyPorts,
    metrics: &KeyMetrics,
    nudges: &Arc<Nudges>,
) -> Result<Opened, KeySupplyError> {
    match settings.strategy {
        Strategy::Pool | Strategy::Status => ledger::open(settings, ports, metrics, nudges),
        Strategy::File => open_file(settings, ports, metrics, nudges),
        Strategy::Claim => open_claim(settings, ports, metrics, nudges),
        Strategy::Snowflake => Ok((Arc::new(IdSource::snowflake(settings, ports)), None)),
        Strategy::Sequence => Ok((Arc::new(IdSource::sequence(settings, ports)), None)),
        Strategy::Hash => {
            let keys = HashKeys::new(settings);
            Ok((Arc::new(HashSource { keys, ports }), None))
        }
    }
}

fn open_file(
    settings: &KeySettings,
    ports: KeyPorts,
    metrics: &KeyMetrics,
    nudges: &Arc<Nudges>,
) -> Result<Opened, KeySupplyError> {
    let files = ports.files.clone().ok_or(KeySupplyError::Missing {
        strategy: settings.strategy.name(),
        needs: "a place for key files",
    })?;
    let series = Series::new(Arc::clone(&files), &ports.cursor, settings);
    let series = Arc::new(series);
    let keygen = FileFill {
        files: Arc::clone(&files),
        series: Arc::clone(&series),
        settings: settings.file,
        nudges: Arc::clone(nudges),
        leases: HeldLeases::new(Arc::clone(&ports.leases), settings.lease_ttl),
    };
    let preload = Preload {
        ports,
        files,
        series,
        settings: settings.file,
        unwanted: settings.unwanted.clone(),
        left_low: FileFill::left_low(&settings.file),
        was_low: AtomicBool::new(false),
        metrics: metrics.clone(),
        nudges: Arc::clone(nudges),
    };
    Ok((Arc::new(preload), Some(Arc::new(keygen))))
}

fn open_claim(
    settings: &KeySettings,
    ports: KeyPorts,
    metrics: &KeyMetrics,
    nudges: &Arc<Nudges>,
) -> Result<Opened, KeySupplyError> {
    let missing = |needs| KeySupplyError::Missing {
        strategy: settings.strategy.name(),
        needs,
    };
    let links = ports.links.ok_or(missing("the links database"))?;
    let rows = links
        .seeded
        .ok_or(missing("a links database with seeded rows"))?;
    let keygen = RowFill {
        rows: Arc::clone(&rows),
        totals: Arc::clone(&links.totals),
        minter: Minter::of(settings),
        settings: settings.claim,
        metrics: metrics.clone(),
        leases: HeldLeases::new(ports.leases, settings.lease_ttl),
    };
    let source = RowSource {
        rows,
        totals: links.totals,
        metrics: metrics.clone(),
        nudges: Arc::clone(nudges),
    };
    Ok((Arc::new(source), Some(Arc::new(keygen))))
}
