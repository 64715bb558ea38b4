use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{LinkCounts, LinkTotals};
use curt_core::{KeyOrigin, PortResult};
use tokio::time::Instant;

use super::{DistributedLinks, sql};
use crate::engine::{Engine, column};

const OP: &str = "count links";
/// States of rows: a tombstone, and the first of those that are deleted and kept.
const TOMBSTONE: i16 = 2;
const DELETED: i16 = 4;

/// Totals of the last count.
pub(super) struct Totals {
    interval: Duration,
    last: Mutex<Option<(Instant, LinkCounts)>>,
}

impl Totals {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            last: Mutex::default(),
        }
    }

    fn recent(&self) -> Option<LinkCounts> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, counts) = last.as_ref()?;
        let lag = at.elapsed();
        (lag < self.interval).then(|| LinkCounts {
            lag,
            ..counts.clone()
        })
    }

    fn keep(&self, at: Instant, counts: &LinkCounts) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((at, counts.clone()));
    }
}

#[async_trait]
impl LinkTotals for DistributedLinks {
    /// A common row of totals would be one server's, and every create would wait for it.
    async fn counts(&self) -> PortResult<LinkCounts> {
        if let Some(counts) = self.totals.recent() {
            return Ok(counts);
        }
        let begun = Instant::now();
        let counts = count(self.tables.engine().await?).await?;
        self.totals.keep(begun, &counts);
        Ok(counts)
    }
}

async fn count(engine: &Engine) -> PortResult<LinkCounts> {
    let mut counts = LinkCounts::default();
    let mut created = vec![0_u64; KeyOrigin::ALL.len()];
    let ledger = KeyOrigin::Ledger as i16;
    for row in engine.read(OP, sql::COUNT_LINKS, &[]).await? {
        let (origin, state): (i16, i16) = (column(OP, &row, 0)?, column(OP, &row, 1)?);
        let rows = column::<i64>(OP, &row, 2)?.cast_unsigned();
        add(&mut created, origin, rows);
        if state < TOMBSTONE {
            counts.live += rows;
        } else if state == TOMBSTONE || state >= DELETED {
            counts.deleted += rows;
            counts.deleted_from_ledger += if origin == ledger { rows } else { 0 };
        }
    }
    for row in engine.read(OP, sql::COUNT_RELEASED, &[]).await? {
        let origin: i16 = column(OP, &row, 0)?;
        let rows = column::<i64>(OP, &row, 1)?.cast_unsigned();
        add(&mut created, origin, rows);
        counts.released_from_ledger += if origin == ledger { rows } else { 0 };
    }
    let created = KeyOrigin::ALL.into_iter().zip(created);
    counts.created = created.filter(|(_, count)| *count > 0).collect();
    Ok(counts)
}

fn add(created: &mut [u64], origin: i16, rows: u64) {
    let place = KeyOrigin::ALL
        .iter()
        .position(|known| *known as i16 == origin);
    if let Some(count) = place.and_then(|place| created.get_mut(place)) {
        *count += rows;
    }
}
