use std::path::Path;

use anyhow::Result;

use crate::engines::Port;

/// The account of a secured broker.
pub(super) const USER: &str = "curt";
pub(super) const PASSWORD: &str = "only-for-tests";
/// More brokers than this keep no further copies.
const COPIES_MAX: usize = 3;

#[derive(Debug)]
pub(super) struct Ports {
    pub(super) client: Port,
    controller: Port,
    /// For clients with an account, over TLS.
    pub(super) secured: Port,
}

impl Ports {
    pub(super) fn free() -> Result<Self> {
        Ok(Self {
            client: Port::free()?,
            controller: Port::free()?,
            secured: Port::free()?,
        })
    }
}

/// The configuration of one broker among all, but for its folder.
pub(super) fn of_broker(index: usize, all: &[Ports]) -> String {
    let Ports {
        client, controller, ..
    } = &all[index];
    let listeners = format!("PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}");
    let number = index + 1;
    let copies = all.len().min(COPIES_MAX);
    let quorum = quorum(all);
    // A topic takes writes while a majority of its copies is there.
    let copies_needed = copies / 2 + 1;
    format!(
        "process.roles=broker,controller\n\
         node.id={number}\n\
         {quorum}\n\
         listeners={listeners}\n\
         advertised.listeners={listeners}\n\
         inter.broker.listener.name=PLAINTEXT\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         num.partitions=3\n\
         default.replication.factor={copies}\n\
         min.insync.replicas={copies_needed}\n\
         offsets.topic.num.partitions=4\n\
         offsets.topic.replication.factor={copies}\n\
         transaction.state.log.replication.factor={copies}\n\
         transaction.state.log.min.isr={copies_needed}\n\
         share.coordinator.state.topic.replication.factor={copies}\n\
         share.coordinator.state.topic.min.isr={copies_needed}\n\
         group.initial.rebalance.delay.ms=0\n\
         broker.session.timeout.ms=3000\n\
         broker.heartbeat.interval.ms=500\n\
         controller.quorum.election.timeout.ms=1000\n\
         controller.quorum.fetch.timeout.ms=1000\n"
    )
}

/// What a single broker has besides, so that clients can come by TLS with the account of [`USER`]; `keystore` is its key
/// and its certificate.
pub(super) fn secured(ports: &Ports, keystore: &Path) -> String {
    let Ports {
        client,
        controller,
        secured,
    } = ports;
    let of_login = |mechanism: &str, module: &str, more: &str| {
        format!(
            "listener.name.secured.{mechanism}.sasl.jaas.config=org.apache.kafka.common.security.{module} required{more};\n"
        )
    };
    let scram = |mechanism| of_login(mechanism, "scram.ScramLoginModule", "");
    let listeners = format!(
        "PLAINTEXT://127.0.0.1:{client},SECURED://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}"
    );
    [
        format!(
            "listeners={listeners}\n\
             advertised.listeners={listeners}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:PLAINTEXT\n\
             sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\n\
             ssl.keystore.type=PEM\n\
             ssl.keystore.location={}\n",
            keystore.display()
        ),
        scram("scram-sha-256"),
        scram("scram-sha-512"),
        of_login("plain", "plain.PlainLoginModule", &format!(" user_{USER}=\"{PASSWORD}\"")),
    ]
    .concat()
}

/// How the accounts are made that a broker itself keeps.
pub(super) fn scram_accounts() -> [String; 2] {
    ["SCRAM-SHA-256", "SCRAM-SHA-512"]
        .map(|mechanism| format!("{mechanism}=[name={USER},password={PASSWORD}]"))
}

/// A single broker is formatted to stand alone, and finds itself by its address; several vote.
fn quorum(all: &[Ports]) -> String {
    if let [Ports { controller, .. }] = all {
        return format!("controller.quorum.bootstrap.servers=127.0.0.1:{controller}");
    }
    let voters: Vec<String> = all
        .iter()
        .enumerate()
        .map(|(index, ports)| format!("{}@127.0.0.1:{}", index + 1, ports.controller))
        .collect();
    format!("controller.quorum.voters={}", voters.join(","))
}
