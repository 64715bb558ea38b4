//! How many people followed each link of a list, all in all.
//!
//! Rollups are kept by day, so that the whole life of a link is many reads. What is older than two days hardly changes: it
//! is read once an hour, remembered, and only the rest is read each time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use curt_core::ports::HourRange;
use curt_core::{ClickSubject, Day, LinkId, PortResult, UnixMillis};

use super::Reports;

const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Clicks that are counted later than this, from a spool that was away, show within [`OLDER_TTL`].
const OLDER_AFTER: Duration = DAY.saturating_mul(2);
const OLDER_TTL: Duration = Duration::from_secs(3_600);
/// Links whose older clicks are remembered; about a hundred bytes each.
const OLDER_LINKS_MAX: usize = 20_000;

/// A link whose clicks are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedLink {
    pub id: LinkId,
    pub generation: u32,
    /// No click is older, but for clocks that differ.
    pub created_at: UnixMillis,
}

/// What is remembered of the older clicks of links.
#[derive(Debug, Default)]
pub(super) struct OlderClicks(Mutex<HashMap<(LinkId, u32), OlderCount>>);

#[derive(Clone, Copy, Debug)]
struct OlderCount {
    before: UnixMillis,
    human: u64,
    read_at: UnixMillis,
}

impl OlderClicks {
    fn get(&self, link: &CountedLink, now: UnixMillis) -> Option<OlderCount> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let older = known.get(&(link.id.clone(), link.generation))?;
        let is_fresh = older.read_at <= now && now.since(older.read_at) < OLDER_TTL;
        is_fresh.then_some(*older)
    }

    fn put(&self, link: &CountedLink, older: OlderCount) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Seldom, and cheaper than to know which are oldest: the next lists read them again.
        if known.len() >= OLDER_LINKS_MAX {
            known.clear();
        }
        known.insert((link.id.clone(), link.generation), older);
    }
}

impl Reports {
    /// How many clicks of humans each link has in all, in order, as far back as counts are kept. May be behind by
    /// [`lag_max`](Self::lag_max), and clicks that were counted days late by an hour.
    pub async fn link_clicks(
        &self,
        links: &[CountedLink],
        now: UnixMillis,
    ) -> PortResult<Vec<u64>> {
        let mut clicks = Vec::with_capacity(links.len());
        for link in links {
            let older = self.older_clicks(link, now).await?;
            let recent = self.human_clicks(link, older.before, UnixMillis::MAX);
            clicks.push(older.human.saturating_add(recent.await?));
        }
        Ok(clicks)
    }

    async fn older_clicks(&self, link: &CountedLink, now: UnixMillis) -> PortResult<OlderCount> {
        let first = link.created_at.minus(DAY);
        let before = Day::of(now.minus(OLDER_AFTER)).start();
        if before <= first {
            return Ok(OlderCount {
                before: first,
                human: 0,
                read_at: now,
            });
        }
        if let Some(known) = self.older.get(link, now) {
            return Ok(known);
        }
        let older = OlderCount {
            before,
            human: self.human_clicks(link, first, before).await?,
            read_at: now,
        };
        self.older.put(link, older);
        Ok(older)
    }

    async fn human_clicks(
        &self,
        link: &CountedLink,
        from: UnixMillis,
        before: UnixMillis,
    ) -> PortResult<u64> {
        let subject = ClickSubject::Link(link.id.clone(), link.generation);
        let totals = self.totals(&subject, HourRange { from, before });
        Ok(totals.await?.human)
    }
}
