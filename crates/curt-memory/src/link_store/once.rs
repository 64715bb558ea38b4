use std::collections::{BTreeSet, HashMap};

use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{Once, Replay};
use curt_core::{LinkId, OwnerId, UnixMillis};

type Name = (OwnerId, Box<str>);

/// What was answered to requests with an `Idempotency-Key`.
#[derive(Debug, Default)]
pub(super) struct OnceRecords {
    records: HashMap<Name, Record>,
    by_age: BTreeSet<(UnixMillis, Name)>,
}

#[derive(Debug)]
struct Record {
    fingerprint: [u8; 32],
    replay: Replay,
}

/// What is known about a request that comes again.
pub(super) enum Known {
    Same(Replay),
    Different,
}

impl OnceRecords {
    /// Forgets what is too old at `now`, then looks.
    pub(super) fn find(&mut self, once: &Once, now: UnixMillis) -> Option<Known> {
        while let Some((at, _)) = self.by_age.first()
            && now.since(*at) > IDEMPOTENCY_KEPT
        {
            if let Some((_, name)) = self.by_age.pop_first() {
                self.records.remove(&name);
            }
        }
        let record = self.records.get(&(once.owner, once.key.clone()))?;
        if record.fingerprint == once.fingerprint {
            Some(Known::Same(record.replay.clone()))
        } else {
            Some(Known::Different)
        }
    }

    /// Keeps the outcome. The caller has just found nothing under this name.
    pub(super) fn record(&mut self, once: Once, ids: Vec<Option<LinkId>>, now: UnixMillis) {
        let name = (once.owner, once.key);
        self.by_age.insert((now, name.clone()));
        let record = Record {
            fingerprint: once.fingerprint,
            replay: Replay { at: now, ids },
        };
        self.records.insert(name, record);
    }
}
