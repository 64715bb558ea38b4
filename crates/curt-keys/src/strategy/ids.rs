use std::sync::Arc;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::link::KeyOrigin;

use super::{Line, Opened, Taking};
use crate::account::KeyAccounts;
use crate::buffer::{Buffer, Feed};
use crate::ids::{IdCodec, SEQUENCE_REGISTER, Sequence, Snowflake};
use crate::settings::KeySettings;
use crate::supply::KeyPorts;

/// `snowflake` and `sequence`: nothing is made ahead but the ring.
struct IdLine {
    ports: KeyPorts,
    buffer: Arc<Buffer>,
    counts_ids: bool,
}

pub(super) fn open_snowflake(settings: &KeySettings, ports: KeyPorts) -> Opened {
    let generator = Snowflake::new(
        Arc::clone(&ports.cursor),
        Arc::clone(&ports.clock),
        IdCodec::new(
            settings.alphabet,
            settings.unwanted.clone(),
            Arc::clone(&ports.cursor),
        ),
        settings.snowflake,
    );
    open(settings, ports, Box::new(generator), false)
}

pub(super) fn open_sequence(settings: &KeySettings, ports: KeyPorts) -> Opened {
    let generator = Sequence::new(
        Arc::clone(&ports.cursor),
        IdCodec::new(
            settings.alphabet,
            settings.unwanted.clone(),
            Arc::clone(&ports.cursor),
        ),
        settings.sequence_block,
    );
    open(settings, ports, Box::new(generator), true)
}

fn open(settings: &KeySettings, ports: KeyPorts, feed: Box<dyn Feed>, counts_ids: bool) -> Opened {
    let buffer = Arc::new(Buffer::new(
        feed,
        settings.buffer.capacity,
        settings.buffer.low,
        settings.dry_wait,
    ));
    let taking = Taking::Ring {
        buffer: Arc::clone(&buffer),
        origin: KeyOrigin::Id,
    };
    let line = IdLine {
        ports,
        buffer,
        counts_ids,
    };
    (taking, Box::new(line))
}

#[async_trait]
impl Line for IdLine {
    /// A sequence knows how many numbers it has given away. A snowflake leaves most of its numbers unused by design,
    /// so that only the keys in sight are counted.
    async fn accounts(&self) -> PortResult<KeyAccounts> {
        let links = self.ports.links()?.counts().await?;
        let used = links.created_from(KeyOrigin::Id);
        let buffered = self.buffer.len() as u64;
        let minted = if self.counts_ids {
            self.ports.cursor.get(SEQUENCE_REGISTER).await?
        } else {
            used + buffered
        };
        let accounts = KeyAccounts {
            minted,
            buffered,
            used,
            ..KeyAccounts::default()
        };
        Ok(accounts.with_difference())
    }
}
