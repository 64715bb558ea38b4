//! Requests with idempotency keys.

use curt_core::ports::{IdempotencyRecord, LinkItem, Replacement, ShardItem, Transferred as _};
use curt_core::{OwnerId, PortResult, ShardId};

use super::OP_IMPORT;
use crate::wide_column::links::WideLinks;
use crate::wide_column::links::idempotency::place;
use crate::wide_column::{Decided, ReadMode, pause};

impl WideLinks {
    pub(super) async fn import_request(&self, item: &LinkItem) -> PortResult<Replacement> {
        let ShardItem::Request { owner, key, record } = &item.item else {
            return Ok(Replacement::Same);
        };
        let mut is_written = false;
        loop {
            let stored = self.requests.get(OP_IMPORT, *owner, key, ReadMode::Decided);
            let stored = stored.await?;
            let there = ShardItem::Request {
                owner: *owner,
                key: key.clone(),
                record: stored.clone().map(Box::new),
            };
            let shard = ShardId::of_request(*owner, key);
            let decided = item.replaces(&LinkItem { shard, item: there });
            match decided {
                Replacement::Write => {}
                Replacement::Same if is_written => return Ok(Replacement::Write),
                decided => return Ok(decided),
            }
            let write = self.write_request((*owner, key), record.as_deref(), stored.as_ref());
            match write.await? {
                Decided::Applied => return Ok(Replacement::Write),
                Decided::Refused => {}
                Decided::Unknown(_) => is_written = true,
            }
            pause().await;
        }
    }

    async fn write_request(
        &self,
        name: (OwnerId, &str),
        record: Option<&IdempotencyRecord>,
        stored: Option<&IdempotencyRecord>,
    ) -> PortResult<Decided> {
        let (owner, key) = name;
        match (record, stored) {
            (Some(record), _) => {
                let place = place(record.plan.at, owner, key);
                self.lists.add(OP_IMPORT, [place]).await?;
                self.requests.put(OP_IMPORT, name, record, stored).await
            }
            (None, Some(stored)) => {
                let forget = self.requests.forget(OP_IMPORT, owner, key, &stored.plan);
                forget.await
            }
            (None, None) => Ok(Decided::Applied),
        }
    }
}
