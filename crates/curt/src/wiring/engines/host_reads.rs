//! Which hosts of a links database look-ups went to, and how far replicas are behind, for `/metrics`.

use std::fmt;

use curt_core::names::metric;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Engines;
#[cfg(feature = "postgres")]
use super::Opened;
#[cfg(feature = "postgres")]
use curt_postgres::Postgres;

impl Engines {
    /// Registers what is known of hosts whose replicas are read.
    pub(crate) fn register_host_reads(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(HostReadsCollector {
            #[cfg(feature = "postgres")]
            databases: self
                .opened
                .iter()
                .filter_map(|(_, opened)| match opened {
                    Opened::Postgres(database) => Some(database.clone()),
                    _ => None,
                })
                .collect(),
        }));
    }
}

#[derive(Debug)]
struct HostReadsCollector {
    #[cfg(feature = "postgres")]
    databases: Vec<Postgres>,
}

struct ReadsOfHost {
    host: String,
    role: &'static str,
    reads: u64,
    lag_seconds: f64,
}

impl HostReadsCollector {
    fn hosts(&self) -> Vec<ReadsOfHost> {
        #[cfg(feature = "postgres")]
        let hosts = self.databases.iter().flat_map(Postgres::host_reads);
        #[cfg(feature = "postgres")]
        let hosts = hosts.map(|host| ReadsOfHost {
            host: host.host,
            role: if host.is_leader { "leader" } else { "replica" },
            reads: host.reads,
            lag_seconds: host.lag.as_secs_f64(),
        });
        #[cfg(not(feature = "postgres"))]
        let hosts = std::iter::empty();
        hosts.collect()
    }
}

impl Collector for HostReadsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let hosts = self.hosts();
        if hosts.is_empty() {
            return Ok(());
        }
        let help =
            "Look-ups of links where replicas are read, by host and what it is: leader, replica.";
        let kind = ConstCounter::new(0_u64).metric_type();
        let mut reads = encoder.encode_descriptor(metric::STORE_READS, help, None, kind)?;
        for host in &hosts {
            let labels = [("host", &*host.host), ("role", host.role)];
            ConstCounter::new(host.reads).encode(reads.encode_family(&labels)?)?;
        }
        let help = "How old at most is what a replica shows, seconds, by host.";
        let kind = ConstGauge::new(0.0).metric_type();
        let mut lag = encoder.encode_descriptor(metric::REPLICA_LAG_SECONDS, help, None, kind)?;
        for host in hosts.iter().filter(|host| host.role == "replica") {
            let labels = [("host", &*host.host)];
            ConstGauge::new(host.lag_seconds).encode(lag.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
