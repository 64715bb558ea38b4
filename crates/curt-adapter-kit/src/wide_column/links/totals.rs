use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{LinkCounts, LinkTotals};
use curt_core::{ErrorKind, KeyOrigin, LinkState, PortError, PortResult};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::WideLinks;
use super::record::{RELEASED, ScannedLink};

const OP: &str = "count links";
/// How long one question goes on counting when older totals are at hand.
const COUNTED_PER_QUESTION: Duration = Duration::from_millis(500);

/// Totals, added up by reading all links: no transaction spans a link and a sum, and sums that a crash leaves wrong would
/// stay so. Each question counts on for a while, from where the one before stopped, and answers with what was added up
/// last: its age is the lag.
pub(super) struct Totals {
    /// How old they may become before links are counted again.
    interval: Duration,
    counting: Mutex<Counting>,
}

impl Totals {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            counting: Mutex::default(),
        }
    }
}

#[derive(Default)]
struct Counting {
    latest: Option<Counted>,
    /// The one under way, and up to where it has come.
    current: Option<(Counted, Option<Box<str>>)>,
}

#[derive(Clone)]
struct Counted {
    began: Instant,
    links: BTreeMap<(i8, i8), u64>,
    released: BTreeMap<i8, u64>,
}

#[async_trait]
impl LinkTotals for WideLinks {
    async fn counts(&self) -> PortResult<LinkCounts> {
        let interval = self.totals.interval;
        let mut counting = self.totals.counting.lock().await;
        let age = counting.latest.as_ref().map(|done| done.began.elapsed());
        let has_older = age.is_some() && !interval.is_zero();
        if age.is_none_or(|age| age >= interval) {
            let limit = match has_older {
                true => COUNTED_PER_QUESTION,
                false => self.deadlines.background,
            };
            self.count_on(&mut counting, limit).await?;
        }
        match &counting.latest {
            Some(counted) => Ok(counted.to_counts()),
            None => {
                let detail = "links are still being counted for the first time";
                Err(PortError::new(
                    ErrorKind::Unavailable,
                    self.deadlines.backend,
                    OP,
                    detail,
                ))
            }
        }
    }
}

impl WideLinks {
    async fn count_on(&self, counting: &mut Counting, limit: Duration) -> PortResult<()> {
        let began = Instant::now();
        let start = || (Counted::new(began), None);
        let (mut counted, mut after) = counting.current.take().unwrap_or_else(start);
        while began.elapsed() < limit {
            let part = match self.rows.scan(OP, after.as_deref(), false).await {
                Ok(part) => part,
                Err(error) => {
                    counting.current = Some((counted, after));
                    return Err(error);
                }
            };
            part.rows.into_iter().for_each(|row| counted.add(row));
            after = part.next;
            if after.is_none() {
                counting.latest = Some(counted);
                return Ok(());
            }
        }
        counting.current = Some((counted, after));
        Ok(())
    }
}

impl Counted {
    fn new(began: Instant) -> Self {
        Self {
            began,
            links: BTreeMap::new(),
            released: BTreeMap::new(),
        }
    }

    fn add(&mut self, row: ScannedLink) {
        for (origin, count) in row.released {
            *self.released.entry(origin).or_default() += count.cast_unsigned();
        }
        if row.state != RELEASED {
            let kind = (row.state, row.origin.unwrap_or(-1));
            *self.links.entry(kind).or_default() += 1;
        }
    }

    fn to_counts(&self) -> LinkCounts {
        let sum = |is_meant: &dyn Fn(LinkState, i8) -> bool| -> u64 {
            let links = self.links.iter().filter(|((state, origin), _)| {
                let state = LinkState::from_stored(state.cast_unsigned());
                state.is_some_and(|state| is_meant(state, *origin))
            });
            links.map(|(_, count)| count).sum()
        };
        let released = |origin: KeyOrigin| self.released.get(&(origin as i8)).copied();
        let is_deleted = |state: LinkState| state == LinkState::Tombstone || state.is_deleted();
        let created = |origin: KeyOrigin| {
            let is_made = |state: LinkState| state != LinkState::Seeded;
            let there = sum(&|state, from| is_made(state) && from == origin as i8);
            (origin, there + released(origin).unwrap_or(0))
        };
        LinkCounts {
            created: KeyOrigin::ALL.into_iter().map(created).collect(),
            live: sum(&|state, _| state.is_live()),
            deleted: sum(&|state, _| is_deleted(state)),
            deleted_from_ledger: sum(&|state, from| {
                is_deleted(state) && from == KeyOrigin::Ledger as i8
            }),
            released_from_ledger: released(KeyOrigin::Ledger).unwrap_or(0),
            seeded: sum(&|state, _| state == LinkState::Seeded),
            lag: self.began.elapsed(),
        }
    }
}
