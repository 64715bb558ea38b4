use std::num::NonZeroUsize;
use std::time::Duration;

/// How DynamoDB is used. The defaults suit a server; see each field for when to change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamoDbSettings {
    /// Requests that are under way at once; others wait their turn, within their deadline.
    pub connections: NonZeroUsize,
    pub connect_timeout: Duration,
    /// Longest time of a call that a request waits for. A bulk has as much for each 100 links. One request to DynamoDB has
    /// half of it, so that what became of a lost one can be looked up.
    pub call_timeout: Duration,
    /// Longest time of lists, counts and upkeep.
    pub background_timeout: Duration,
    /// How old totals may become before links are counted again, which reads the table of links once. Zero: with every
    /// question.
    pub totals_interval: Duration,
}

impl Default for DynamoDbSettings {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::new(64).unwrap_or(NonZeroUsize::MIN),
            connect_timeout: Duration::from_secs(1),
            call_timeout: Duration::from_millis(1_500),
            background_timeout: Duration::from_secs(6),
            totals_interval: Duration::from_secs(6 * 3_600),
        }
    }
}
