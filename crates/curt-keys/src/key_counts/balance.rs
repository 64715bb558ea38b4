use std::collections::VecDeque;

use super::total;
use crate::heartbeat::Holdings;
use crate::status::KeyStatus;

/// Looks that are compared.
const LOOKS: usize = 4;
/// Looks in a row that must agree. A process that stops moves its keys back into a pool, which makes them seen twice
/// for a few looks.
const CONFIRMATIONS: usize = 3;

/// Tells, over several looks, whether more keys are found than were made.
///
/// Keys move on while a look goes from stage to stage, always from ledger to pool to buffer to link. So each stage is
/// taken from an older look than the one before it: links from the oldest, ledgers from the newest. A key that moves is
/// missed then and never met twice, and what is found too much is surely there.
#[derive(Debug, Default)]
pub struct BalanceWatch {
    looks: VecDeque<Look>,
    surplus: VecDeque<u64>,
}

#[derive(Debug)]
struct Look {
    status: KeyStatus,
    buffered: Option<u64>,
}

impl BalanceWatch {
    /// Looks after which an imbalance is certain, if there is one and nothing changes.
    pub const LOOKS_TO_CONFIRM: usize = LOOKS + CONFIRMATIONS - 1;

    /// Adds a look, and returns how many keys are surely found twice: 0 while that is not certain, `None` while
    /// something did not answer.
    pub fn add(&mut self, status: KeyStatus) -> Option<u64> {
        let buffered = status.holdings().map(|held| held.buffered);
        self.looks.push_back(Look { status, buffered });
        if self.looks.len() > LOOKS {
            self.looks.pop_front();
        }
        let Some(surplus) = self.surplus() else {
            self.surplus.clear();
            return (self.looks.len() < LOOKS).then_some(0);
        };
        self.surplus.push_back(surplus);
        if self.surplus.len() > CONFIRMATIONS {
            self.surplus.pop_front();
        }
        let is_confirmed = self.surplus.len() == CONFIRMATIONS;
        let least = self.surplus.iter().min().copied().unwrap_or_default();
        Some(if is_confirmed { least } else { 0 })
    }

    fn surplus(&self) -> Option<u64> {
        let [oldest, older, old, new] = self.looks.iter().collect::<Vec<_>>().try_into().ok()?;
        let links = oldest.status.links.as_ref()?;
        let held = Holdings {
            buffered: older.buffered?,
            in_transit: 0,
        };
        let pooled = old.status.pooled_keys()?;
        let ledgers = new.status.ledger_counts()?;
        Some(total(ledgers.into_iter(), pooled, held, links).duplicated)
    }
}
