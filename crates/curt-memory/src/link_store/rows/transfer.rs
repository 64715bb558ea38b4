//! What comes from another store.

use curt_core::ports::StoredRow;
use curt_core::{KeyOrigin, Link, LinkId, LinkState, ShardId};

use super::{Row, Rows};

impl Rows {
    /// Puts, or removes, everything that is kept under an id, and counts it.
    pub(in crate::link_store) fn transfer(
        &mut self,
        id: &LinkId,
        stored: Option<&StoredRow>,
        former_generation: Option<u32>,
    ) {
        let counted = |link: &Link| (link.state != LinkState::Seeded).then_some(link.origin as u8);
        if let Some(origin) = self.get(id).and_then(|row| counted(&row.link)) {
            *self.created.entry(origin).or_default() -= 1;
        }
        match stored {
            Some(stored) => {
                if let Some(origin) = counted(&stored.link) {
                    *self.created.entry(origin).or_default() += 1;
                }
                self.put(Row {
                    link: stored.link.clone(),
                    was_permanent: stored.was_permanent,
                    clicks_spent: stored.clicks_spent,
                    token: stored.token,
                });
            }
            None => self.remove(id),
        }
        if let Some(former) = former_generation {
            self.former_generations.insert(id.clone(), former);
        }
    }

    /// Counts released keys as if they had been released here.
    pub(in crate::link_store) fn transfer_released(
        &mut self,
        shard: ShardId,
        origin: KeyOrigin,
        count: u64,
    ) {
        let before = self.released.insert((shard, origin), count).unwrap_or(0);
        *self.created.entry(origin as u8).or_default() += count.saturating_sub(before);
    }
}
