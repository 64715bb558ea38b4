//! Moves as a command: with a bar, until Ctrl-C.

use std::time::Duration;

use clap::Args;
use curt_core::{NodeIndex, Placement, ShardMap};
use curt_shards::{MoveProgress, MoveReport, MoverSettings, PlannedMove, ShardMover};
use curt_sqlite::Access;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::ShardStores;

/// A mover that gave no sign of life for this long is dead.
const TAKEOVER_AFTER: Duration = Duration::from_secs(15);

/// How shards are moved.
#[derive(Args, Debug)]
pub(super) struct Moves {
    #[command(flatten)]
    config: ConfigArgs,

    /// Links copied in a second at most, instead of links.move_rate; 0: no limit
    #[arg(long, value_name = "LINKS")]
    rate: Option<u64>,

    /// Only say what would be moved
    #[arg(long)]
    dry_run: bool,

    /// Do not wait until an earlier mover has been silent for 15 s: it is known to be dead
    #[arg(long)]
    force: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a plan is made of.
pub(super) struct Spread {
    pub(super) map: ShardMap,
    pub(super) nodes: Vec<NodeIndex>,
    pub(super) placement: Placement,
}

pub(super) enum Work {
    Moves(Vec<PlannedMove>),
    Resume,
    Cancel,
}

impl Moves {
    pub(super) fn run(
        self,
        plan: impl FnOnce(&Spread) -> anyhow::Result<Work>,
    ) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let stores = ShardStores::open(&config, "curt shards", Access::Server)?;
            let done = self.move_all(&config, &stores, plan).await;
            stores.engines.close().await;
            let moved = done?;
            if self.json {
                println!("{}", json!({ "moves": moved, "dry_run": self.dry_run }));
            }
            Ok(())
        })
    }

    async fn move_all(
        &self,
        config: &Config,
        stores: &ShardStores,
        plan: impl FnOnce(&Spread) -> anyhow::Result<Work>,
    ) -> anyhow::Result<Vec<Value>> {
        let nodes = curt_shards::known_nodes(&*stores.maps).await?;
        let spread = Spread {
            map: stores.maps.load().await?,
            nodes: nodes.into_iter().map(|(node, _)| node).collect(),
            placement: config.store.placement,
        };
        let work = plan(&spread)?;
        let rate = self.rate.unwrap_or(config.store.move_rate);
        let settings = MoverSettings {
            items_per_second: Some(rate),
            holder: format!("curt shards, process {}", std::process::id()).into(),
            takeover_after: match self.force {
                true => Duration::ZERO,
                false => TAKEOVER_AFTER,
            },
        };
        let mover = stores.mover(settings);
        let stop = CancellationToken::new();
        let interrupted = stop.clone();
        #[expect(clippy::disallowed_methods, reason = "ends with the command")]
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        match work {
            Work::Moves(moves) if self.dry_run => Ok(self.show_plan(&moves)),
            Work::Moves(moves) => self.run_moves(&mover, &moves, &stop).await,
            Work::Resume | Work::Cancel if self.dry_run => {
                anyhow::bail!("--dry-run: `curt shards show` tells of the move that is unfinished")
            }
            Work::Resume => self.end_unfinished(&mover, true, &stop).await,
            Work::Cancel => self.end_unfinished(&mover, false, &stop).await,
        }
    }

    fn show_plan(&self, moves: &[PlannedMove]) -> Vec<Value> {
        if !self.json {
            for planned in moves {
                let PlannedMove { shard, from, to } = planned;
                println!("shard {}: node {} to node {}", shard.number(), from.0, to.0);
            }
            println!("shards that would move: {} of 1024", moves.len());
        }
        moves
            .iter()
            .map(|planned| described(planned, None))
            .collect()
    }

    async fn run_moves(
        &self,
        mover: &ShardMover,
        moves: &[PlannedMove],
        stop: &CancellationToken,
    ) -> anyhow::Result<Vec<Value>> {
        let bar = bar(moves.len() as u64);
        let mut moved = Vec::with_capacity(moves.len());
        for planned in moves {
            let PlannedMove { shard, from, to } = planned;
            let name = format!("shard {} from node {} to {}", shard.number(), from.0, to.0);
            let show = |progress: MoveProgress| {
                bar.set_message(format!(
                    "{name}, {}: {} links",
                    progress.phase.name(),
                    progress.copied
                ));
            };
            let report = mover.move_shard(*shard, *to, stop, &show).await;
            if report.is_err() {
                bar.abandon();
            }
            moved.push(described(planned, Some(&report?)));
            bar.inc(1);
        }
        bar.finish_and_clear();
        if !self.json {
            println!("shards moved: {}", moved.len());
        }
        Ok(moved)
    }

    async fn end_unfinished(
        &self,
        mover: &ShardMover,
        resumes: bool,
        stop: &CancellationToken,
    ) -> anyhow::Result<Vec<Value>> {
        let Some(record) = mover.unfinished().await? else {
            if !self.json {
                println!("no move is unfinished");
            }
            return Ok(Vec::new());
        };
        let bar = bar(1);
        let show = |progress: MoveProgress| {
            bar.set_message(format!(
                "{}: {} links",
                progress.phase.name(),
                progress.copied
            ));
        };
        let report = match resumes {
            true => mover.resume(stop, &show).await,
            false => mover.cancel(stop, &show).await,
        };
        bar.finish_and_clear();
        let report = report?.unwrap_or_default();
        if !self.json {
            println!("the move of shard {} is ended", record.shard.number());
        }
        let planned = PlannedMove {
            shard: record.shard,
            from: record.from,
            to: record.to,
        };
        Ok(vec![described(&planned, Some(&report))])
    }
}

fn described(planned: &PlannedMove, report: Option<&MoveReport>) -> Value {
    let mut value = json!({
        "shard": planned.shard.number(),
        "from": planned.from.0,
        "to": planned.to.0,
    });
    if let Some(report) = report {
        value["copied"] = report.copied.into();
        let pause = u64::try_from(report.write_pause.as_millis()).unwrap_or(u64::MAX);
        value["write_pause_ms"] = pause.into();
    }
    value
}

/// Shown on a terminal only.
fn bar(moves: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:30} {pos} of {len} shards, {eta} left, {wide_msg}");
    ProgressBar::new(moves).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
