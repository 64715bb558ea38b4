//! The pool of connections, and transactions with a deadline.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult};
use mysql_async::{
    Conn, Error, IsolationLevel, Opts, OptsBuilder, Pool, PoolConstraints, PoolOpts, Transaction,
    TxOpts,
};

use super::failure::{BACKEND, away, failed, no_connection, too_late};
use super::settings::MysqlSettings;
use curt_adapter_kit::Effect;
use curt_adapter_kit::plain_text;

/// Work inside a transaction, which others do not see before it is committed.
pub(super) type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 't>>;

pub(super) struct Engine {
    pool: Pool,
    /// Without the password.
    address: String,
    settings: MysqlSettings,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.address)
    }
}

impl Engine {
    /// Connects to nothing yet.
    pub(super) fn new(url: &str, settings: &MysqlSettings) -> PortResult<Self> {
        let opts = Opts::from_url(url).map_err(|error| {
            let detail =
                "it is not an address of MySQL: write mysql://user:password@host:3306/database";
            PortError::new(ErrorKind::Invalid, BACKEND, "read the address", detail)
                .with_source(error)
        })?;
        let address = format!(
            "{}:{}/{}",
            opts.ip_or_hostname(),
            opts.tcp_port(),
            opts.db_name().unwrap_or_default()
        );
        if opts.ssl_opts().is_none() && !plain_text::is_this_machine(opts.ip_or_hostname()) {
            plain_text::warn(BACKEND, &address);
        }
        let constraints = PoolConstraints::new(0, settings.connections.get());
        let pool = PoolOpts::new().with_constraints(constraints.unwrap_or_default());
        let wait = settings.call_timeout.as_secs().max(1);
        let opts = OptsBuilder::from_opts(opts)
            .pool_opts(pool)
            // It would look for a socket file on this machine first, whatever the address says.
            .prefer_socket(false)
            .tcp_keepalive(Some(Duration::from_secs(10)))
            .setup(vec![format!(
                "SET SESSION innodb_lock_wait_timeout = {wait}"
            )]);
        Ok(Self {
            pool: Pool::new(opts),
            address,
            settings: settings.clone(),
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) async fn connection(&self, op: &'static str) -> PortResult<Conn> {
        tokio::time::timeout(self.settings.connect_timeout, self.pool.get_conn())
            .await
            .map_err(|_| away(op, &self.address))?
            .map_err(|error| no_connection(op, &self.address, error))
    }

    /// Runs `work` and commits it. Until the commit is sent a failure undoes everything; after that nobody knows.
    pub(super) async fn transact<T, F>(&self, op: &'static str, work: F) -> PortResult<T>
    where
        F: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T>,
    {
        let mut connection = self.connection(op).await?;
        // What others commit meanwhile is seen, and no gap between rows is locked.
        let mut options = TxOpts::default();
        options.with_isolation_level(IsolationLevel::ReadCommitted);
        let deadline = tokio::time::Instant::now() + self.settings.call_timeout;
        let before = async {
            let mut transaction = connection.start_transaction(options).await?;
            let result = work(&mut transaction).await?;
            Ok((transaction, result))
        };
        let (transaction, result) = tokio::time::timeout_at(deadline, before)
            .await
            .map_err(|_| too_late(op, &self.address, Effect::None))?
            .map_err(|error| failed(op, &self.address, Effect::None, error))?;
        tokio::time::timeout_at(deadline, transaction.commit())
            .await
            .map_err(|_| too_late(op, &self.address, Effect::Unknown))?
            .map_err(|error| failed(op, &self.address, Effect::Unknown, error))?;
        Ok(result)
    }
}
