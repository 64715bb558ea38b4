/// Where records go that were polled and cannot be decoded.
pub trait DeadLetters: Send + Sync {
    /// Counts the record and keeps what helps to find out why, without failing or waiting. Called twice, as happens
    /// after a crash: counted twice.
    fn put(&self, partition: u32, offset: u64, reason: &'static str, record: &[u8]);
}
