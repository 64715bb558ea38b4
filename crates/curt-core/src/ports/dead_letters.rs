use async_trait::async_trait;

use crate::error::PortResult;

/// Where records go that were polled and cannot be decoded.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Counts the record and keeps what helps to find out why, without failing or waiting. Called twice, as happens
    /// after a crash: counted twice.
    fn put(&self, partition: u32, offset: u64, reason: &'static str, record: &[u8]);

    /// Returns when what was put before is as durable as it ever will be: offsets move past a record only then.
    ///
    /// - *Timed out*: nothing is lost; call again.
    async fn sync(&self) -> PortResult<()> {
        Ok(())
    }
}
