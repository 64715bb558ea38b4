//! Kafka, where every broker is a controller too.

mod settings;
mod wire;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use super::certificates::Certificates;
use super::command::output;
use super::engine::Recipe;
use super::home::Home;
use super::port::on_free_ports;
use super::shared::Shared;
use super::wait::wait_until;
use super::{Engine, Missing, cache, java};
use settings::Ports;

const KAFKA: Missing = Missing {
    engine: "Kafka",
    install: "apt-get install maven, then scripts/engines.sh",
};
const KCAT: Missing = Missing {
    engine: "kcat",
    install: "apt-get install kcat",
};
const HEAP_MEBIBYTES: u32 = 512;
/// Of all members alike; any will do, and each cluster of a machine has its own ports.
const CLUSTER_ID: &str = "Y3VydC10ZXN0a2l0LWthZg";

/// A client of Kafka's that knows nothing of curt.
pub fn kcat() -> Result<PathBuf> {
    Ok(KCAT.program("kcat")?)
}

/// The single broker that all tests of this process share, each with topics of its own: see
/// [`unique`](super::unique).
pub fn shared() -> Result<Arc<Cluster>> {
    static SHARED: Shared<Cluster> = Shared::new();
    SHARED.get(|| Cluster::start(1))
}

/// The same for the one of [`Cluster::start_secured`].
pub fn shared_secured() -> Result<Arc<Secured>> {
    static SHARED: Shared<Secured> = Shared::new();
    SHARED.get(Cluster::start_secured)
}

/// A few brokers, counted from 0. Topics are made when they are first used, with three partitions, and live on up to
/// three brokers.
#[derive(Debug)]
pub struct Cluster {
    brokers: Vec<Broker>,
}

impl Cluster {
    /// Starts this many brokers, and returns when all know each other.
    pub fn start(count: usize) -> Result<Self> {
        ensure!(count > 0, "a cluster has brokers");
        on_free_ports(|| {
            let ports: Vec<Ports> = (0..count).map(|_| Ports::free()).collect::<Result<_>>()?;
            let all: Vec<String> = (0..count)
                .map(|index| settings::of_broker(index, &ports))
                .collect();
            let brokers = ports.into_iter().zip(&all);
            let mut cluster = Self {
                brokers: brokers
                    .map(|(ports, settings)| Broker::launch(Home::new()?, ports, settings, count))
                    .collect::<Result<_>>()?,
            };
            for broker in &mut cluster.brokers {
                broker.engine.wait_until_it_serves()?;
            }
            Ok(cluster)
        })
    }

    /// Starts one broker that answers over TLS, too, to clients with an account.
    pub fn start_secured() -> Result<Secured> {
        on_free_ports(|| {
            let home = Home::new()?;
            let certificates = Certificates::make(home.path())?;
            let others = home.path().join("others");
            fs::create_dir(&others)?;
            let other = Certificates::make(&others)?;
            let keystore = home.path().join("keystore.pem");
            let parts = [&certificates.key, &certificates.own].map(fs::read_to_string);
            let parts: Vec<String> = parts.into_iter().collect::<Result<_, _>>()?;
            fs::write(&keystore, parts.concat())?;
            let ports = Ports::free()?;
            let settings = [
                settings::of_broker(0, std::slice::from_ref(&ports)),
                settings::secured(&ports, &keystore),
            ];
            let mut broker = Broker::launch(home, ports, &settings.concat(), 1)?;
            broker.engine.wait_until_it_serves()?;
            Ok(Secured {
                authority: certificates.authority,
                other_authority: other.authority,
                broker,
            })
        })
    }

    /// `127.0.0.1:1,127.0.0.1:2`, as clients take it.
    #[must_use]
    pub fn addresses(&self) -> String {
        let addresses: Vec<String> = self
            .brokers
            .iter()
            .map(|broker| broker.address().to_string())
            .collect();
        addresses.join(",")
    }

    /// Where one broker answers clients.
    pub fn address(&self, index: usize) -> Result<SocketAddr> {
        let broker = self.brokers.get(index).context("no such broker")?;
        Ok(broker.address())
    }

    /// A broker, to be killed, paused or started again. A restart waits until all brokers are there.
    pub fn broker_mut(&mut self, index: usize) -> Result<&mut Engine> {
        let broker = self.brokers.get_mut(index).context("no such broker")?;
        Ok(&mut broker.engine)
    }

    /// How many brokers one of them believes to be there.
    pub fn brokers_seen_by(&self, index: usize) -> Result<usize> {
        wire::count_brokers(self.address(index)?)
    }

    /// Returns when one of them believes that this many are there. A death is noticed after three seconds.
    pub fn wait_until_seen(&self, by: usize, count: usize) -> Result<()> {
        wait_until("the brokers see who is there", || {
            // It may be too busy with what happened to answer.
            Ok(self.brokers_seen_by(by).is_ok_and(|seen| seen == count))
        })
    }
}

/// A broker that clients reach over TLS, with an account.
#[derive(Debug)]
pub struct Secured {
    broker: Broker,
    authority: PathBuf,
    other_authority: PathBuf,
}

impl Secured {
    /// `curt:only-for-tests@127.0.0.1:1`.
    #[must_use]
    pub fn account_and_address(&self) -> String {
        let address = self.broker.ports.secured.address();
        format!("{}:{}@{address}", settings::USER, settings::PASSWORD)
    }

    /// The certificate of the authority that the broker's own is signed with.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// The certificate of one that has signed others.
    #[must_use]
    pub fn other_authority(&self) -> &Path {
        &self.other_authority
    }
}

#[derive(Debug)]
struct Broker {
    engine: Engine,
    ports: Ports,
}

impl Broker {
    /// Starts it and does not wait: it serves only when most of the others are there too.
    fn launch(home: Home, ports: Ports, settings: &str, count: usize) -> Result<Self> {
        let java = KAFKA.program("java")?;
        let jars = cache::jars(&KAFKA, "kafka")?;
        let file = home.path().join("server.properties");
        let data = home.path().join("data");
        fs::write(&file, format!("{settings}log.dirs={}\n", data.display()))?;
        format_data(&java, &jars, &file, count)?;
        let address = ports.client.address();
        let recipe = Recipe {
            name: "Kafka",
            command: Box::new(move || {
                let mut command = kafka_command(&java, &jars);
                command.arg("kafka.Kafka").arg(&file);
                command
            }),
            serves: Box::new(move || wire::count_brokers(address).is_ok_and(|seen| seen == count)),
            stop_signal: Signal::TERM,
        };
        Ok(Self {
            engine: Engine::launch(home, recipe)?,
            ports,
        })
    }

    fn address(&self) -> SocketAddr {
        self.ports.client.address()
    }
}

/// Makes the folders that a broker refuses to start without.
fn format_data(java: &Path, jars: &str, file: &PathBuf, count: usize) -> Result<()> {
    let mut command = kafka_command(java, jars);
    command.args(["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"]);
    command.arg(file);
    if count == 1 {
        command.arg("--standalone");
        for account in settings::scram_accounts() {
            command.args(["--add-scram", &account]);
        }
    }
    output(&mut command).map(drop)
}

fn kafka_command(java: &Path, jars: &str) -> Command {
    let mut command = java::command(java, HEAP_MEBIBYTES, jars);
    command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
    command
}
