//! The clicks line of this process: from the workers' click writers to the counts in the database.
//!
//! The spool belongs to one process at a time, so clicks are counted by the process that writes them down. One that has
//! no role `clicks` leaves them in the spool, up to its bound, for the next one that has.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use curt_clicks::capture::Capture;
use curt_clicks::classify::{AddressList, CurrentReference, ReferenceFiles, ReferencePaths};
use curt_clicks::consume::{ConsumerMetrics, ConsumerPorts, Pipeline, Retention};
use curt_clicks::erase::ClickEraser;
use curt_clicks::report::{FreshReports, ReportLag, Reports};
use curt_core::ports::{ClickDatabase, ClickReports, ClickStore};
use curt_core::{ClockGuard, Dimension};
use curt_http::{Readiness, RouterClicks};
use curt_spool::{Spool, SpoolMetrics};
use prometheus_client::registry::Registry;

use crate::click_health::ClickHealth;
use crate::config::check::at;
use crate::config::{ClickSettings, Config, ConfigError};
use crate::roles::{Role, Roles};
use crate::supervisor::Supervisor;
use crate::wiring::Stores;

const COUNTRIES: &str = ReferenceFiles::COUNTRIES;
const NETWORKS: &str = ReferenceFiles::NETWORKS;

/// What sees to it that counting is told about and does no harm, and what clicks are read by.
pub(crate) struct ClickWatchers {
    pub(crate) ready: Arc<Readiness>,
    pub(crate) clock_guard: Arc<ClockGuard>,
    pub(crate) reference: CurrentReference,
}

impl ClickWatchers {
    pub(crate) fn new(
        ready: &Arc<Readiness>,
        clock_guard: &Arc<ClockGuard>,
        reference: &CurrentReference,
    ) -> Self {
        Self {
            ready: ready.clone(),
            clock_guard: clock_guard.clone(),
            reference: reference.clone(),
        }
    }
}

/// What the server writes and reads clicks with.
#[derive(Default)]
pub(crate) struct ClickLine {
    /// One for each redirect worker.
    pub(crate) workers: Vec<Capture>,
    pub(crate) router: Option<RouterClicks>,
    pub(crate) reports: Option<Arc<Reports>>,
    pub(crate) eraser: Option<Arc<ClickEraser>>,
}

impl ClickLine {
    /// Starts what the configuration and the roles of this process ask for.
    pub(crate) fn start(
        config: &Config,
        roles: &Roles,
        stores: &mut Stores,
        supervisor: &Supervisor,
        registry: &mut Registry,
        watchers: ClickWatchers,
    ) -> anyhow::Result<Self> {
        match &config.clicks {
            Some(settings) if roles.need_clicks() => {
                let store = stores.open_clicks(config)?;
                Self::open(
                    roles, settings, store, stores, supervisor, registry, watchers,
                )
            }
            _ => Ok(Self::default()),
        }
    }

    /// Opens the spool for what this process does with it, and starts to count what is in it where that is its role.
    fn open(
        roles: &Roles,
        settings: &ClickSettings,
        store: Arc<dyn ClickDatabase>,
        stores: &Stores,
        supervisor: &Supervisor,
        registry: &mut Registry,
        watchers: ClickWatchers,
    ) -> anyhow::Result<Self> {
        let metrics = SpoolMetrics::register(registry);
        let now = stores.clock.now();
        let spool = Spool::open(&settings.folder, &settings.spool, now, &metrics)
            .with_context(|| format!("could not open the spool {}", settings.folder.display()))?;
        let router = settings.spool.writers - 1;
        let capture = |number| spool.take_writer(number).map(Capture::new);
        let mut line = Self {
            workers: (0..router).map(capture).collect::<Result<_, _>>()?,
            router: Some(RouterClicks::new(capture(router)?)),
            reports: None,
            eraser: None,
        };
        let mut lag = ReportLag {
            own: None,
            others: Some(settings.flush.window),
        };
        let mut reports: Arc<dyn ClickReports> = store.clone();
        let mut eraser = ClickEraser::new(store.clone());
        if roles.has(Role::Clicks) {
            let pipeline = count(
                settings,
                spool,
                store.clone(),
                stores,
                supervisor,
                registry,
                &watchers,
            );
            eraser = eraser.after_flush(pipeline.flush_requests());
            reports = Arc::new(FreshReports::new(reports, pipeline.flush_requests()));
            lag.own = Some(pipeline.state());
            // Nobody else counts into a file.
            if !settings.flush.has_remote_store {
                lag.others = None;
            }
            let clock = stores.clock.clone();
            let health = ClickHealth::new(pipeline.state(), store, clock, watchers.ready, registry);
            supervisor.start("click-health", |stop| health.watch(stop));
        } else {
            supervisor.start("spool", |stop| async move {
                stop.cancelled().await;
                drop(spool);
            });
        }
        let reports = Reports::new(reports, settings.retention.clicks_kept)
            .with_lag(lag)
            .lacking(missing_files(settings));
        line.reports = Some(Arc::new(reports));
        line.eraser = Some(Arc::new(eraser));
        Ok(line)
    }
}

fn count(
    settings: &ClickSettings,
    spool: Spool,
    store: Arc<dyn ClickStore>,
    stores: &Stores,
    supervisor: &Supervisor,
    registry: &mut Registry,
    watchers: &ClickWatchers,
) -> Arc<Pipeline> {
    let spool = Arc::new(spool);
    let ports = ConsumerPorts {
        source: spool.clone(),
        dead_letters: spool,
        store: store.clone(),
        clock: stores.clock.clone(),
        reference: watchers.reference.clone(),
    };
    let metrics = ConsumerMetrics::register(registry);
    let pipeline = Pipeline::new(ports, settings.flush, metrics.clone());
    let running = Arc::clone(&pipeline);
    supervisor.start("clicks", |stop| running.run_on_own_thread(stop));
    let retention = Retention::new(store, stores.clock.clone(), settings.retention, metrics)
        .guarded_by(watchers.clock_guard.clone());
    supervisor.start("click-retention", |stop| retention.run(stop));
    pipeline
}

/// Loads the files that clicks are read by, and keeps what they say up to date. Lists of addresses are of use only where
/// clicks are counted.
pub(crate) fn follow_files(
    config: &Config,
    roles: &Roles,
    supervisor: &Supervisor,
) -> Result<CurrentReference, ConfigError> {
    let counted = config.clicks.as_ref().filter(|_| roles.has(Role::Clicks));
    let paths = ReferencePaths {
        rules: config.click_rules.path.clone(),
        countries: counted.and_then(|settings| settings.countries.clone()),
        networks: counted.and_then(|settings| settings.networks.clone()),
    };
    let files = ReferenceFiles::open(paths).map_err(|error| ConfigError::new(error.to_string()))?;
    let (current, every) = (files.current(), config.click_rules.reload);
    supervisor.start("click-files", |stop| files.watch(every, stop));
    Ok(current)
}

/// Reads the files of addresses, and forgets them.
pub(crate) fn check_files(settings: &ClickSettings) -> Result<(), ConfigError> {
    let mut mistakes = ConfigError::none();
    for (setting, file) in [
        (COUNTRIES, &settings.countries),
        (NETWORKS, &settings.networks),
    ] {
        mistakes.note(addresses(setting, file.as_deref()));
    }
    mistakes.into_result()
}

fn addresses(setting: &str, file: Option<&Path>) -> Result<AddressList, ConfigError> {
    let Some(file) = file else {
        return Ok(AddressList::none());
    };
    let read = AddressList::open(file).map_err(|error| {
        format!(
            "could not read {} as MMDB: {error}; \"make geoip\" fetches a file of countries",
            file.display()
        )
    });
    at(setting, read)
}

/// Dimensions that have no values because a setting names no file.
fn missing_files(settings: &ClickSettings) -> Vec<(Dimension, &'static str)> {
    let mut missing = Vec::new();
    if settings.countries.is_none() {
        missing.extend([Dimension::Country, Dimension::City].map(|one| (one, COUNTRIES)));
    }
    if settings.networks.is_none() {
        missing.push((Dimension::Network, NETWORKS));
    }
    missing
}
