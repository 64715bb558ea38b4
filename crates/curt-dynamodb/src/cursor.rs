use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::Cursor;

use crate::engine::Engine;
use crate::item::{Item, Key, number};
use crate::write::{Condition, Write};

const VALUE: &str = "value";

/// Numbers as items, which move by conditional writes.
pub(crate) struct DynamoDbCursor {
    engine: Arc<Engine>,
}

impl DynamoDbCursor {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

fn key(name: &str) -> Key {
    Key::item(format!("cursor/{name}"))
}

#[async_trait]
impl Cursor for DynamoDbCursor {
    async fn get(&self, name: &str) -> PortResult<u64> {
        const OP: &str = "read a cursor";
        let key = key(name);
        let found = self.engine.get(OP, &key);
        let found: Option<Item> = self.engine.deadlines.look_up(OP, found).await?;
        let value = found.map(|item| item.number(VALUE)).transpose()?;
        Ok(value.unwrap_or(0).cast_unsigned())
    }

    async fn advance(&self, name: &str, seen: u64, next: u64) -> PortResult<bool> {
        const OP: &str = "move a cursor";
        let write = |condition| {
            let value = number(next.cast_signed());
            Write::put(key(name), vec![(VALUE, Some(value))]).when(condition)
        };
        let advance = async {
            let write_seen = write(Condition::Equals(VALUE, number(seen.cast_signed())));
            let decided = self.engine.decide(OP, &write_seen).await?.into_result()?;
            if decided || seen != 0 {
                return Ok(decided);
            }
            // A cursor that was never moved has no item.
            let write_first = write(Condition::Absent);
            self.engine.decide(OP, &write_first).await?.into_result()
        };
        self.engine.deadlines.change(OP, advance).await
    }
}
