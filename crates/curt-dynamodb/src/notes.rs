use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{MapNote, MapNotes};

use crate::engine::Engine;
use crate::item::{Key, number, text};
use crate::write::{Condition, Write};

const VERSION: &str = "version";
const BODY: &str = "body";

/// Texts as items, which change by conditional writes.
pub(crate) struct DynamoDbNotes {
    engine: Arc<Engine>,
}

impl DynamoDbNotes {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

fn key(name: &str) -> Key {
    Key::item(format!("note/{name}"))
}

#[async_trait]
impl MapNotes for DynamoDbNotes {
    async fn note(&self, name: &str) -> PortResult<MapNote> {
        const OP: &str = "read a note";
        let key = key(name);
        let found = self.engine.get(OP, &key);
        let Some(item) = self.engine.deadlines.look_up(OP, found).await? else {
            return Ok(MapNote::default());
        };
        Ok(MapNote {
            version: item.number(VERSION)?.cast_unsigned(),
            text: item.text(BODY)?.to_owned(),
        })
    }

    async fn put_note(&self, name: &str, note: &MapNote) -> PortResult<bool> {
        const OP: &str = "write a note";
        let version = note.version.cast_signed();
        let condition = match version {
            ..=0 => return Ok(false),
            1 => Condition::Absent,
            _ => Condition::Equals(VERSION, number(version - 1)),
        };
        let attributes = vec![
            (VERSION, Some(number(version))),
            (BODY, Some(text(&note.text))),
        ];
        let write = Write::put(key(name), attributes).when(condition);
        let decided = self.engine.decide(OP, &write);
        self.engine
            .deadlines
            .change(OP, decided)
            .await?
            .into_result()
    }
}
