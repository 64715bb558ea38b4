use std::num::NonZeroUsize;
use std::time::Duration;

/// How a MySQL or MariaDB is used.
#[derive(Clone, Debug)]
pub struct MysqlSettings {
    /// Most connections that this process opens to it.
    pub connections: NonZeroUsize,
    /// How long a call waits for one of them.
    pub connect_timeout: Duration,
    /// How long a call may take once it has one.
    pub call_timeout: Duration,
}

impl Default for MysqlSettings {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::new(16).unwrap_or(NonZeroUsize::MIN),
            connect_timeout: Duration::from_secs(2),
            call_timeout: Duration::from_secs(6),
        }
    }
}
