//! The hosts of an address, and logins at them.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use futures_util::StreamExt as _;
use futures_util::stream::{FuturesUnordered, poll_fn};
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Config, NoTls, Notification, Socket};

use crate::address::Address;
use crate::failure::login_refusal;
use crate::settings::PostgresSettings;
use crate::tls::Tls;

/// How long a host may keep silent before the next one is tried beside it: one that accepts connections and then says
/// nothing, such as a stopped process, must not keep us from the others.
const NEXT_HOST_AFTER: Duration = Duration::from_millis(300);

/// Which of several hosts will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// One that takes writes, so that after a failover the promoted standby is found.
    ReadWrite,
    /// Any that answers.
    ReadOnly,
}

/// Gets what the engine tells a connection unasked, and `None` when the connection has ended.
pub(crate) type Receive = Arc<dyn Fn(Option<Notification>) + Send + Sync>;

/// A login that succeeded.
pub(super) struct Login {
    pub(super) client: ClientWrapper,
    /// The place of the host in the address.
    pub(super) host: usize,
}

/// Why no host serves us, in one line that names each.
#[derive(Clone, Debug)]
pub(super) struct Unreachable {
    pub(super) detail: String,
    /// Whether a host gave its own reason: connections that it has let in before may still work.
    pub(super) is_answer: bool,
}

pub(super) struct Hosts {
    configs: Vec<Config>,
    /// The region of each, where the address names them.
    regions: Vec<Box<str>>,
    /// That of this process.
    own_region: Option<Box<str>>,
    tls: Option<Tls>,
    connect_timeout: Duration,
    label: String,
}

impl Hosts {
    pub(super) fn new(address: &Address, tls: Option<Tls>, settings: &PostgresSettings) -> Self {
        // The system counts these in seconds and refuses zero.
        let second = Duration::from_secs(1);
        let silence_max = (settings.background_timeout + settings.connect_timeout).max(second);
        let configs = address.hosts.iter().cloned().map(|mut config| {
            config
                .connect_timeout(settings.connect_timeout)
                .tcp_user_timeout(silence_max)
                .keepalives_idle(silence_max)
                .keepalives_interval(settings.connect_timeout.max(second))
                .keepalives_retries(3);
            config
        });
        Self {
            configs: configs.collect(),
            regions: address.regions.clone(),
            own_region: settings.region.clone(),
            tls,
            connect_timeout: settings.connect_timeout,
            label: address.to_string(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.configs.len()
    }

    /// The region that a host is in, if the address says so.
    pub(super) fn region(&self, host: usize) -> Option<&str> {
        self.regions.get(host).map(|region| &**region)
    }

    pub(super) fn has_region(&self, region: &str) -> bool {
        self.regions.iter().any(|known| **known == *region)
    }

    /// Whether a host is in another region than this process.
    pub(super) fn is_far(&self, host: usize) -> bool {
        self.own_region.is_some() && self.region(host) != self.own_region.as_deref()
    }

    /// How a host is called: name and port.
    pub(super) fn label(&self, host: usize) -> String {
        host_label(&self.configs[host])
    }

    /// Logs in at the first of these hosts that will do. A silent one is tried on beside the next ones. The driver could
    /// try several hosts itself, but would wait for a silent one for ever.
    pub(super) async fn log_in(
        &self,
        order: impl Iterator<Item = usize>,
        access: Access,
        receive: Option<&Receive>,
    ) -> Result<Login, Unreachable> {
        let mut waiting = order.peekable();
        let mut attempts = FuturesUnordered::new();
        let mut refusals = Vec::new();
        loop {
            attempts.extend(
                waiting
                    .next()
                    .map(|host| self.attempt(host, access, receive)),
            );
            match tokio::time::timeout(NEXT_HOST_AFTER, attempts.next()).await {
                Ok(Some(Ok(login))) => return Ok(login),
                Ok(Some(Err(refusal))) => refusals.push(refusal),
                Ok(None) if waiting.peek().is_none() => return Err(self.unreachable(refusals)),
                // All of them are silent.
                Ok(None) | Err(_) => {}
            }
        }
    }

    async fn attempt(
        &self,
        host: usize,
        access: Access,
        receive: Option<&Receive>,
    ) -> Result<Login, Refusal> {
        let login = self.reach(host, access, receive);
        match tokio::time::timeout(self.connect_timeout, login).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Refusal {
                host,
                is_answer: false,
                words: format!("no answer within {:?}", self.connect_timeout),
            }),
        }
    }

    async fn reach(
        &self,
        host: usize,
        access: Access,
        receive: Option<&Receive>,
    ) -> Result<Login, Refusal> {
        let mut config = self.configs[host].clone();
        config.target_session_attrs(match access {
            Access::ReadWrite => TargetSessionAttrs::ReadWrite,
            Access::ReadOnly => TargetSessionAttrs::Any,
        });
        let connected = match &self.tls {
            Some(tls) => open(&config, tls.clone(), receive.cloned()).await,
            None => open(&config, NoTls, receive.cloned()).await,
        };
        match connected {
            Ok(client) => Ok(Login { client, host }),
            Err(error) => {
                let is_answer = error.as_db_error().is_some();
                let words = login_refusal(&error);
                Err(Refusal {
                    host,
                    is_answer,
                    words,
                })
            }
        }
    }

    /// Every host is named with its reason: that of the last one alone may hide what is wrong.
    fn unreachable(&self, mut refusals: Vec<Refusal>) -> Unreachable {
        refusals.sort_unstable_by_key(|refusal| refusal.host);
        let lines: Vec<String> = refusals
            .iter()
            .map(|Refusal { host, words, .. }| {
                format!("{}: {words}", host_label(&self.configs[*host]))
            })
            .collect();
        Unreachable {
            is_answer: refusals.iter().any(|refusal| refusal.is_answer),
            detail: format!("{} cannot be used ({})", self.label, lines.join("; ")),
        }
    }
}

/// Why one host does not serve us.
struct Refusal {
    host: usize,
    is_answer: bool,
    words: String,
}

fn host_label(config: &Config) -> String {
    let port = config.get_ports().first().unwrap_or(&5432);
    match config.get_hosts().first() {
        Some(Host::Tcp(name)) => format!("{name}:{port}"),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => format!(":{port}"),
    }
}

async fn open<T>(
    config: &Config,
    tls: T,
    receive: Option<Receive>,
) -> Result<ClientWrapper, tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, mut connection) = config.connect(tls).await?;
    #[expect(clippy::disallowed_methods, reason = "the client holds it")]
    let task = tokio::spawn(async move {
        let mut messages = poll_fn(move |context| connection.poll_message(context));
        while let Some(message) = messages.next().await {
            match (message, &receive) {
                (Ok(AsyncMessage::Notification(told)), Some(receive)) => receive(Some(told)),
                (Ok(_), _) => {}
                (Err(error), _) => {
                    // Calls that wait for an answer get an error; an idle connection is replaced by its pool.
                    tracing::debug!(%error, "connection ended");
                    break;
                }
            }
        }
        if let Some(receive) = receive {
            receive(None);
        }
    });
    Ok(ClientWrapper::new(client, task))
}
