use std::sync::Arc;

use anyhow::{Result, ensure};

use super::Server;
use crate::engines::Port;
use crate::engines::port::on_free_ports;
use crate::engines::wait::wait_until;

/// A primary and a standby that follows it.
///
/// Asynchronously, so that a failover may lose what was committed last. A test that must not lose it makes it
/// synchronous: `alter system set synchronous_standby_names = '*'`, then `select pg_reload_conf()`.
#[derive(Debug)]
pub struct Pair {
    primary: Server,
    standby: Server,
}

impl Pair {
    /// Starts both, and returns when the standby follows.
    pub fn start() -> Result<Self> {
        let primary = Server::start()?;
        let standby = on_free_ports(|| primary.start_standby(Arc::new(Port::free()?)))?;
        let pair = Self { primary, standby };
        pair.wait_until_followed()?;
        Ok(pair)
    }

    /// The server that is written to.
    #[must_use]
    pub fn primary(&self) -> &Server {
        &self.primary
    }

    /// The server that follows it; after [`promote`](Self::promote), the former primary.
    #[must_use]
    pub fn standby(&self) -> &Server {
        &self.standby
    }

    /// One address for a database on both, which no failover changes: clients look for the one that can be written to.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let mut ports = [self.primary.port(), self.standby.port()];
        ports.sort_unstable();
        let [one, other] = ports;
        format!(
            "postgres://postgres@127.0.0.1:{one},127.0.0.1:{other}/{database}?target_session_attrs=read-write"
        )
    }

    /// Kills the primary as `kill -9` does. Nothing can be written until [`promote`](Self::promote).
    pub fn kill_primary(&mut self) -> Result<()> {
        self.primary.kill()
    }

    /// Lets commits on the primary wait until the standby has them.
    pub fn make_synchronous(&self) -> Result<()> {
        let wait = "alter system set synchronous_standby_names = '*'";
        self.primary.sql(wait)?;
        self.primary.sql("select pg_reload_conf()")?;
        let waits = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        wait_until("the standby is waited for", || {
            Ok(self.primary.sql(waits)? != "0")
        })
    }

    /// Starts the primary after a crash, without losing what it has on its disk.
    pub fn restart_primary(&mut self) -> Result<()> {
        self.primary.restart()
    }

    /// Kills the standby as `kill -9` does, until [`restart_standby`](Self::restart_standby).
    pub fn kill_standby(&mut self) -> Result<()> {
        self.standby.kill()
    }

    /// Starts the standby on what it has, and returns when it follows.
    pub fn restart_standby(&mut self) -> Result<()> {
        self.standby.restart()?;
        self.wait_until_followed()
    }

    /// Makes the standby the primary, and returns when it can be written to. Nothing follows it until
    /// [`add_standby`](Self::add_standby).
    pub fn promote(&mut self) -> Result<()> {
        let promoted = self.standby.sql("select pg_promote(true, 60)")?;
        ensure!(promoted == "t", "not promoted: {}", self.standby.log_end());
        std::mem::swap(&mut self.primary, &mut self.standby);
        Ok(())
    }

    /// Replaces the former primary by a new standby on its port, and returns when that follows.
    pub fn add_standby(&mut self) -> Result<()> {
        self.standby.kill()?;
        self.standby = self.primary.start_standby(self.standby.claim())?;
        self.wait_until_followed()
    }

    /// Returns when the standby has everything that the primary has written by now.
    pub fn wait_until_followed(&self) -> Result<()> {
        let followed = "select count(*) from pg_stat_replication \
            where state = 'streaming' and replay_lsn >= pg_current_wal_lsn()";
        wait_until("the standby follows", || {
            Ok(self.primary.sql(followed)? != "0")
        })
    }
}
