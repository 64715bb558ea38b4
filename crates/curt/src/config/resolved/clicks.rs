use std::path::{Path, PathBuf};
use std::time::Duration;

use curt_clicks::aggregate::AggregateSettings;
use curt_clicks::classify::ClickRules;
use curt_clicks::consume::{ConsumerSettings, RetentionSettings};
use curt_clicks::forward::ForwardSettings;
use curt_clicks::record::IpForm;
use curt_spool::SpoolSettings;

use crate::config::check::{at, positive};
use crate::config::{ConfigError, raw, units};
use crate::wiring::EngineAddress;

use super::store::StoreSettings;

/// How long clicks of a stream that keeps them for days are aggregated.
const SHARED_WINDOW: Duration = Duration::from_secs(30 * 60);

/// What is done about clicks.
#[derive(Debug)]
pub(crate) struct ClickSettings {
    /// The spool's.
    pub(crate) folder: PathBuf,
    /// The stream that processes share; `None`: the spool is the stream.
    pub(crate) stream: Option<EngineAddress>,
    /// Where windows are kept; `None`: in the consumers' memory.
    pub(crate) counters: Option<EngineAddress>,
    pub(crate) forward: ForwardSettings,
    /// One writer for each redirect worker, and one for the router.
    pub(crate) spool: SpoolSettings,
    pub(crate) flush: ConsumerSettings,
    pub(crate) retention: RetentionSettings,
    pub(crate) countries: Option<PathBuf>,
    pub(crate) networks: Option<PathBuf>,
}

/// The file of rules for user agents, which tell people from programs also where clicks are not written down.
#[derive(Debug)]
pub(crate) struct ClickRuleSettings {
    /// `None`: they are compiled in.
    pub(crate) path: Option<PathBuf>,
    /// How often this file, and those of addresses, are looked at for changes.
    pub(crate) reload: Duration,
}

/// Reads the rules with the settings, so that a wrong file is refused like a wrong setting.
pub(super) fn rules(raw: &raw::Clicks) -> Result<ClickRuleSettings, ConfigError> {
    let path = Some(PathBuf::from(&raw.rules)).filter(|_| !raw.rules.is_empty());
    if let Some(path) = &path {
        let rules = ClickRules::open(path);
        at("clicks.rules", rules.map_err(|problem| problem.to_string()))?;
    }
    Ok(ClickRuleSettings {
        path,
        reload: positive("clicks.files_reload", &raw.files_reload)?,
    })
}

/// `None`: clicks are not written down.
pub(super) fn resolve(
    raw: &raw::Clicks,
    data_dir: &Path,
    store: &StoreSettings,
    workers: usize,
) -> Result<Option<ClickSettings>, ConfigError> {
    if !raw.capture {
        return Ok(None);
    }
    let stream = &store.stream;
    let is_stream_shared = stream.kind().is_shared();
    let disk_reserve = at("clicks.disk_reserve", units::size(&raw.disk_reserve))?;
    let retention_size = units::size_or_never(&raw.retention_size);
    let clicks_bytes_max = at("clicks.retention_size", retention_size)?;
    let spool = spool(raw, workers, disk_reserve)?;
    // The spool is freed when a window is written: most of it must be left for what comes meanwhile.
    let read_bytes_max = spool.total_bytes / 8;
    let cpu_share = raw.cpu_share;
    if !(cpu_share > 0.0 && cpu_share <= 1.0) {
        let message = "clicks.cpu_share: must be greater than zero and at most 1";
        return Err(ConfigError::new(message));
    }
    let clicks_kept = at("clicks.retention", units::duration_or_never(&raw.retention))?;
    let file = |path: &str| (!path.is_empty()).then(|| PathBuf::from(path));
    Ok(Some(ClickSettings {
        folder: match is_stream_shared {
            true => data_dir.join(&raw.spool_folder),
            false => stream.path().to_path_buf(),
        },
        stream: is_stream_shared.then(|| stream.clone()),
        counters: store.counters.clone(),
        forward: ForwardSettings {
            ip_form: at("clicks.stream_addresses", ip_form(&raw.stream_addresses))?,
            ..ForwardSettings::default()
        },
        flush: ConsumerSettings {
            window: window(&raw.flush_every, is_stream_shared)?,
            window_bytes_max: at("clicks.window_memory", units::size(&raw.window_memory))?,
            read_bytes_max,
            cpu_share,
            has_remote_store: store.clicks.kind().is_shared(),
            disk_reserve,
            clicks_bytes_max,
            aggregate: AggregateSettings {
                keeps_clicks: clicks_kept != Some(Duration::ZERO),
                keeps_addresses: raw.addresses,
            },
            ..ConsumerSettings::default()
        },
        spool,
        retention: RetentionSettings {
            clicks_kept,
            clicks_bytes_max,
            disk_reserve,
            rollups_kept: at(
                "clicks.rollup_retention",
                units::duration_or_never(&raw.rollup_retention),
            )?,
            ..RetentionSettings::default()
        },
        countries: file(&raw.countries),
        networks: file(&raw.networks),
    }))
}

fn spool(
    raw: &raw::Clicks,
    workers: usize,
    disk_reserve: u64,
) -> Result<SpoolSettings, ConfigError> {
    let spool = SpoolSettings {
        writers: u32::try_from(workers + 1).unwrap_or(u32::MAX),
        segment_bytes: at("clicks.spool_segment", units::size(&raw.spool_segment))?,
        total_bytes: at("clicks.spool_max", units::size(&raw.spool_max))?,
        sync_every: positive("clicks.spool_sync", &raw.spool_sync)?,
        // Twice: what is in the spool can be counted only while the counts themselves have room.
        disk_reserve_bytes: disk_reserve.saturating_mul(2),
        dead_letter_bytes: at(
            "clicks.dead_letters_max",
            units::size(&raw.dead_letters_max),
        )?,
        keeps_dead_records: raw.addresses,
    };
    at(
        "clicks.spool_max",
        spool.check().map_err(|problem| problem.detail),
    )?;
    Ok(spool)
}

fn window(text: &str, is_stream_shared: bool) -> Result<Duration, ConfigError> {
    match text {
        "auto" if is_stream_shared => Ok(SHARED_WINDOW),
        "auto" => Ok(ConsumerSettings::default().window),
        text => positive("clicks.flush_every", text),
    }
}

fn ip_form(text: &str) -> Result<IpForm, String> {
    match text {
        "full" => Ok(IpForm::Full),
        "network" => Ok(IpForm::Network),
        "none" => Ok(IpForm::Nothing),
        other => Err(format!("{other:?}: use full, network or none")),
    }
}
