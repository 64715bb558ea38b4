//! Metrics that are looked up when somebody asks for them: the process, the files of embedded databases, refusals.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use curt_accounts::{AccountServices, SharedQuotas};
use curt_core::names::metric;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use crate::config::StoreSettings;
use crate::wiring::EngineKind;

/// Registers what every process shows, whatever it does.
pub(crate) fn register_process(registry: &mut Registry, store: &StoreSettings) {
    let build = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("sqlite", curt_sqlite::version()),
    ];
    registry.register(
        metric::BUILD,
        "What runs: version, and the version of SQLite",
        Info::new(build),
    );
    registry.register_collector(Box::new(ProcessCollector));
    registry.register_collector(Box::new(DatabaseCollector::of(store)));
}

/// Registers what was refused, where there is somebody to refuse, and whether limits are counted with other processes.
pub(crate) fn register_accounts(
    registry: &mut Registry,
    accounts: &AccountServices,
    quotas: Option<&Arc<SharedQuotas>>,
) {
    let accounts = accounts.clone();
    registry.register_collector(Box::new(AccountCollector { accounts }));
    if let Some(quotas) = quotas {
        registry.register_collector(Box::new(QuotaCollector(Arc::clone(quotas))));
    }
}

/// The system's account of this process.
#[derive(Debug)]
struct ProcessCollector;

/// Fields of `/proc/self/stat`, counted from behind the name, which may hold anything.
mod stat {
    pub(super) const USER_TICKS: usize = 11;
    pub(super) const SYSTEM_TICKS: usize = 12;
    pub(super) const THREADS: usize = 17;
    pub(super) const START_TICKS: usize = 19;
    pub(super) const VIRTUAL_BYTES: usize = 20;
    pub(super) const RESIDENT_PAGES: usize = 21;
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Elsewhere than on Linux there is nothing to read, and nothing is shown.
        let Ok(text) = fs::read_to_string("/proc/self/stat") else {
            return Ok(());
        };
        let Some((_, behind)) = text.rsplit_once(')') else {
            return Ok(());
        };
        let fields: Vec<u64> = behind
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        let field = |number: usize| fields.get(number).copied().unwrap_or(0);
        let seconds = |ticks| as_float(ticks) / as_float(clock_ticks_per_second());
        let cpu = seconds(field(stat::USER_TICKS) + field(stat::SYSTEM_TICKS));
        let counter = ConstCounter::new(cpu);
        let help = "CPU time that the process has used, seconds.";
        counter.encode(encoder.encode_descriptor(
            metric::PROCESS_CPU_SECONDS,
            help,
            None,
            counter.metric_type(),
        )?)?;
        let mut gauge = |name, help, value: f64| encode_gauge(&mut encoder, name, help, value);
        gauge(
            metric::PROCESS_RESIDENT_BYTES,
            "Memory that the process holds, bytes.",
            as_float(field(stat::RESIDENT_PAGES) * page_size() as u64),
        )?;
        gauge(
            metric::PROCESS_VIRTUAL_BYTES,
            "Address space of the process, bytes.",
            as_float(field(stat::VIRTUAL_BYTES)),
        )?;
        gauge(
            metric::PROCESS_THREADS,
            "Threads of the process.",
            as_float(field(stat::THREADS)),
        )?;
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            let help = "Files and sockets that the process has open.";
            gauge(
                metric::PROCESS_OPEN_FDS,
                help,
                as_float(open.count() as u64),
            )?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            let help = "How many files and sockets the process may have open.";
            gauge(metric::PROCESS_MAX_FDS, help, as_float(most))?;
        }
        if let Some(boot) = boot_seconds() {
            let help = "When the process was started, seconds since 1970.";
            let started = as_float(boot) + seconds(field(stat::START_TICKS));
            gauge(metric::PROCESS_START_SECONDS, help, started)?;
        }
        Ok(())
    }
}

/// When the system was started, seconds since 1970.
fn boot_seconds() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

/// Exact up to 2^53, which no figure here comes near.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn as_float(number: u64) -> f64 {
    number as f64
}

fn encode_gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: f64,
) -> fmt::Result {
    let gauge = ConstGauge::new(value);
    let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
    gauge.encode(metric)
}

/// The files of SQLite that the settings name.
#[derive(Debug)]
struct DatabaseCollector {
    files: Vec<(&'static str, PathBuf)>,
}

impl DatabaseCollector {
    fn of(store: &StoreSettings) -> Self {
        let mut files: Vec<(&'static str, PathBuf)> = Vec::new();
        for (part, address) in store.addresses() {
            let path = address.path();
            let is_new = files.iter().all(|(_, known)| known != path);
            if address.kind() == EngineKind::Sqlite && is_new {
                let name = part.setting().trim_start_matches("store.");
                files.push((name, path.to_owned()));
            }
        }
        Self { files }
    }
}

impl Collector for DatabaseCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Bytes of the files of embedded databases, by database and file: data, wal.";
        let kind = ConstGauge::new(0.0).metric_type();
        let mut metric = encoder.encode_descriptor(metric::DATABASE_BYTES, help, None, kind)?;
        for (database, path) in &self.files {
            for (file, suffix) in [("data", ""), ("wal", "-wal")] {
                let labels = [("database", *database), ("file", file)];
                let bytes = as_float(file_bytes(path, suffix));
                ConstGauge::new(bytes).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

fn file_bytes(path: &Path, suffix: &str) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    fs::metadata(name).map_or(0, |facts| facts.len())
}

/// Whether limits are counted together with other processes.
struct QuotaCollector(Arc<SharedQuotas>);

impl fmt::Debug for QuotaCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuotaCollector")
    }
}

impl Collector for QuotaCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let degraded = if self.0.is_degraded() { 1.0 } else { 0.0 };
        let help = "Whether limits are counted by this process alone because store.quotas is away.";
        encode_gauge(&mut encoder, metric::QUOTAS_DEGRADED, help, degraded)?;
        let fallbacks = ConstCounter::new(self.0.fallbacks());
        let help = "Questions about limits answered by the process's own count.";
        fallbacks.encode(encoder.encode_descriptor(
            metric::QUOTA_FALLBACKS,
            help,
            None,
            fallbacks.metric_type(),
        )?)
    }
}

struct AccountCollector {
    accounts: AccountServices,
}

impl fmt::Debug for AccountCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountCollector")
    }
}

impl Collector for AccountCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let failures = ConstCounter::new(self.accounts.audit.sign_in_failures());
        let help = "Sign-ins and password checks of users that failed.";
        failures.encode(encoder.encode_descriptor(
            metric::SIGN_IN_FAILURES,
            help,
            None,
            failures.metric_type(),
        )?)?;
        let help = "Requests that a setting of [limits] refused, by limit.";
        let kind = failures.metric_type();
        let mut metric = encoder.encode_descriptor(metric::LIMIT_REFUSALS, help, None, kind)?;
        for (limit, count) in self.accounts.limits.refusals() {
            let labels = [("limit", limit)];
            ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
