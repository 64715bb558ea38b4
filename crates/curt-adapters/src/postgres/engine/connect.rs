use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Error, NoTls, Socket};

use crate::postgres::address::Address;
use crate::postgres::settings::{PostgresSettings, Session};
use crate::postgres::tls::Tls;

type Connected = (Client, JoinHandle<()>);

/// Finds the host that serves us now. The driver could try several hosts itself, yet one that accepts connections and
/// then says nothing, such as a stopped process, would keep it from the others for ever.
pub(super) struct Hosts {
    configs: Vec<Config>,
    tls: Option<Tls>,
    settings: PostgresSettings,
    /// Where the last connection was made: most likely still the right one.
    last: AtomicUsize,
}

impl Hosts {
    pub(super) fn new(address: &Address, tls: Option<Tls>, settings: &PostgresSettings) -> Self {
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

impl Connect for Hosts {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, Error>> + Send + '_>> {
        Box::pin(self.find())
    }
}
