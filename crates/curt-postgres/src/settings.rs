use std::num::NonZeroUsize;
use std::time::Duration;

/// How a PostgreSQL is used. The defaults suit a server; see each field for when to change it.
///
/// A process has three pools of connections, so that kinds of work do not wait for each other: one for look-ups, one for
/// the writes that requests wait for, and one for everything else. Each has a deadline over whole calls: the wait for a
/// connection, the login and the statements together.
#[derive(Clone, Debug)]
pub struct PostgresSettings {
    /// Most connections for look-ups by key, and as many to standbys while the primary does not answer.
    pub lookup_connections: NonZeroUsize,
    /// Most connections for writes that a request waits for. Writes that do not come to an end hold no others.
    pub write_connections: NonZeroUsize,
    /// Most connections for lists, reports, counts, keys and upkeep.
    pub background_connections: NonZeroUsize,
    pub lookup_timeout: Duration,
    pub write_timeout: Duration,
    pub background_timeout: Duration,
    /// Of adding a window of clicks, which is retried as it is: what does not fit into it would never be counted.
    pub flush_timeout: Duration,
    /// How long one host may take to accept a login.
    pub connect_timeout: Duration,
    /// How long a look-up waits for the primary before it asks a standby as well. `None`: standbys are not read.
    pub standby_after: Option<Duration>,
    pub read_from: ReadFrom,
    pub replica_choice: ReplicaChoice,
    /// How far a replica may be behind the leader and still be read.
    pub replica_lag_max: Duration,
    /// How old totals of links may be where they are counted by reading all of them.
    pub totals_interval: Duration,
    /// The region that this process is in.
    pub region: Option<Box<str>>,
}

/// Which hosts look-ups of links are for while the leader is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// The replicas of the own region, where the address says which host is in which region and the leader is in another;
    /// else the leader.
    #[default]
    Auto,
    Leader,
    Replica,
}

/// Which of several good replicas a look-up goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaChoice {
    /// Of two by chance the one that answers sooner, by its last answers and by what waits for it.
    #[default]
    Latency,
    /// One after the other.
    RoundRobin,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        let connections = NonZeroUsize::new(8).unwrap_or(NonZeroUsize::MIN);
        Self {
            lookup_connections: connections,
            write_connections: connections,
            background_connections: connections,
            lookup_timeout: Duration::from_millis(1_500),
            write_timeout: Duration::from_millis(1_500),
            background_timeout: Duration::from_secs(6),
            flush_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(2),
            standby_after: Some(Duration::from_millis(250)),
            read_from: ReadFrom::Auto,
            replica_choice: ReplicaChoice::Latency,
            replica_lag_max: Duration::from_secs(1),
            totals_interval: Duration::from_secs(60),
            region: None,
        }
    }
}

impl PostgresSettings {
    /// The same number of connections for every kind of work.
    #[must_use]
    pub fn with_connections(self, connections: NonZeroUsize) -> Self {
        Self {
            lookup_connections: connections,
            write_connections: connections,
            background_connections: connections,
            ..self
        }
    }

    /// The same deadline for every call.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            lookup_timeout: timeout,
            write_timeout: timeout,
            background_timeout: timeout,
            flush_timeout: timeout,
            ..self
        }
    }
}
