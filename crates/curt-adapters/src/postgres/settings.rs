use std::num::NonZeroUsize;
use std::time::Duration;

/// How a PostgreSQL is used. The defaults suit a server; see each field for when to change it.
#[derive(Clone, Debug)]
pub struct PostgresSettings {
    /// Most connections that this process opens to it.
    pub connections: NonZeroUsize,
    /// How long one host may take to accept a connection before the next host is tried.
    pub connect_timeout: Duration,
    /// How long a call waits for one of the connections.
    pub wait_timeout: Duration,
    /// How long one statement may run. The engine ends it then; a second later the caller stops waiting.
    pub statement_timeout: Duration,
    pub session: Session,
}

/// Which of several hosts will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Session {
    /// One that takes writes, so that after a failover the promoted standby is found.
    #[default]
    Writable,
    /// The first that answers.
    Any,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::new(16).unwrap_or(NonZeroUsize::MIN),
            connect_timeout: Duration::from_secs(2),
            wait_timeout: Duration::from_secs(2),
            statement_timeout: Duration::from_secs(5),
            session: Session::default(),
        }
    }
}
