use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Error, NoTls, Socket};

use crate::postgres::address::Address;
use crate::postgres::settings::{PostgresSettings, Session};
use crate::postgres::tls::Tls;

type Connected = (Client, JoinHandle<()>);

/// Connects on one runtime for all callers. A connection lives on the runtime that opened it and dies with it, and
/// callers may belong to one that ends earlier than the engine, as that of a redirect worker does.
pub(super) struct Connector {
    hosts: Arc<Hosts>,
    /// The runtime that the engine was made on or, if it was made outside of any, the first caller's.
    runtime: OnceLock<Handle>,
}

impl Connector {
    pub(super) fn new(address: &Address, tls: Option<Tls>, settings: &PostgresSettings) -> Self {
        Self {
            hosts: Arc::new(Hosts::new(address, tls, settings)),
            runtime: Handle::try_current().map_or_else(|_| OnceLock::new(), OnceLock::from),
        }
    }

    async fn connect_on_own_runtime(&self) -> Result<Connected, Error> {
        let runtime = self.runtime.get_or_init(Handle::current);
        let hosts = Arc::clone(&self.hosts);
        let attempt = runtime.spawn(async move { hosts.find().await });
        // A caller that gives up takes its attempt along.
        let _given_up = AbortOnDrop(attempt.abort_handle());
        match attempt.await {
            Ok(outcome) => outcome,
            // The runtime ends, and the process with it: the pool's own limit answers.
            Err(_) => std::future::pending().await,
        }
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Finds the host that serves us now. The driver could try several hosts itself, yet one that accepts connections and
/// then says nothing, such as a stopped process, would keep it from the others for ever.
struct Hosts {
    configs: Vec<Config>,
    tls: Option<Tls>,
    settings: PostgresSettings,
    /// Where the last connection was made: most likely still the right one.
    last: AtomicUsize,
}

impl Hosts {
    fn new(address: &Address, tls: Option<Tls>, settings: &PostgresSettings) -> Self {
        // The system counts these in seconds and refuses zero.
        let second = Duration::from_secs(1);
        let patience = (settings.statement_timeout + settings.connect_timeout).max(second);
        let configs = address.hosts.iter().cloned().map(|mut config| {
            config
                .connect_timeout(settings.connect_timeout)
                .tcp_user_timeout(patience)
                .keepalives_idle(patience)
                .keepalives_interval(settings.connect_timeout.max(second))
                .keepalives_retries(3);
            if settings.session == Session::Writable {
                config.target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
            }
            config
        });
        Self {
            configs: configs.collect(),
            tls,
            settings: settings.clone(),
            last: AtomicUsize::new(0),
        }
    }

    async fn find(&self) -> Result<Connected, Error> {
        let (count, first) = (self.configs.len(), self.last.load(Ordering::Relaxed));
        let mut refusal = None;
        for n in (first..first + count).map(|n| n % count) {
            let attempt = self.reach(&self.configs[n]);
            match tokio::time::timeout(self.settings.connect_timeout, attempt).await {
                Ok(Ok(connected)) => {
                    self.last.store(n, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(error)) => refusal = Some(error),
                Err(_) => tracing::debug!(host = n, "no answer in time"),
            }
        }
        match refusal {
            Some(error) => Err(error),
            // Every host was silent. The pool's own limit, which is due now, says so.
            None => std::future::pending().await,
        }
    }

    async fn reach(&self, config: &Config) -> Result<Connected, Error> {
        let connected = match &self.tls {
            Some(tls) => open(config, tls.clone()).await?,
            None => open(config, NoTls).await?,
        };
        // Set here and not at start-up: poolers between us and the engine refuse start-up options.
        let limits = format!(
            "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = 10000",
            self.settings.statement_timeout.as_millis()
        );
        connected.0.batch_execute(&limits).await?;
        Ok(connected)
    }
}

async fn open<T>(config: &Config, tls: T) -> Result<Connected, Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    let task = tokio::spawn(async move {
        // Whoever waits for an answer hears of it; an idle connection is replaced by the pool.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    Ok((client, task))
}

impl Connect for Connector {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, Error>> + Send + '_>> {
        Box::pin(self.connect_on_own_runtime())
    }
}
