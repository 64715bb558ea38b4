//! One run of a copy: with a bar, until it is done or told to stop.

use curt_copy::{
    CopyError, CopyNotes, CopyProgress, CopyRecord, CopySettings, CopyStage, LinkCopy,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Copy;
use super::sides::{CopySides, refused};

pub(super) struct CopyRun<'a> {
    pub(super) sides: &'a CopySides,
    pub(super) options: &'a Copy,
}

/// What Ctrl-C and SIGTERM mean.
struct Signals {
    /// The source takes no more writes.
    switch: CancellationToken,
    stop: CancellationToken,
}

impl CopyRun<'_> {
    pub(super) async fn run(&self) -> anyhow::Result<Value> {
        let mut notes = CopyNotes::load(self.sides.notes.clone()).await?;
        self.begin(&mut notes).await?;
        let signals = self.watch_signals()?;
        let copy = LinkCopy {
            from: self.sides.from.clone(),
            to: self.sides.to.clone(),
            settings: CopySettings {
                items_per_second: Some(self.options.rate),
            },
        };
        let bar = self.bar().await?;
        let show = |progress: CopyProgress| show(&bar, progress);
        let done = self.copy_and_compare(&copy, &mut notes, &signals, &show);
        let done = done.await;
        bar.finish_and_clear();
        done.map_err(explained)
    }

    /// Refuses a destination that another copy, or something else, has filled.
    async fn begin(&self, notes: &mut CopyNotes) -> anyhow::Result<()> {
        let source = &self.sides.from.identity;
        if notes.is_unfinished() {
            if notes.record.source != *source {
                return Err(refused(
                    "--to: a copy of another source was begun here, and is not done",
                )
                .into());
            }
            if !self.options.resume {
                return Err(refused(
                    "--to: a copy of this source was begun here, and is not done: --resume goes on with it",
                )
                .into());
            }
            return Ok(());
        }
        let is_empty = self.sides.is_destination_empty().await?;
        if !is_empty && !self.options.into_existing {
            return Err(refused(
                "--to: the database is not empty: name an empty one, or copy to what is there with --into-existing",
            )
            .into());
        }
        notes.record = CopyRecord {
            source: source.clone(),
            is_into_existing: !is_empty,
            ..CopyRecord::default()
        };
        Ok(notes.store().await?)
    }

    async fn copy_and_compare(
        &self,
        copy: &LinkCopy,
        notes: &mut CopyNotes,
        signals: &Signals,
        show: &(dyn Fn(CopyProgress) + Sync),
    ) -> Result<Value, CopyError> {
        let switch = self.options.follow.then_some(&signals.switch);
        let report = copy.run(notes, switch, &signals.stop, show).await?;
        let has_followed = notes.record.follower.is_some();
        let digest = match self.options.no_verify {
            true => None,
            false => {
                let is_into_existing = notes.record.is_into_existing;
                Some(copy.verify(is_into_existing, &signals.stop, show).await?)
            }
        };
        copy.finish(notes).await?;
        notes.record.is_done = true;
        notes.store().await?;
        Ok(json!({ "links": {
            "copied": report.copied.items,
            "written": report.copied.written + report.followed.written,
            "outdated": report.copied.outdated + report.followed.outdated,
            "followed": has_followed.then_some(report.followed.items),
            "items": digest.as_ref().map(curt_copy::Digest::items),
            "checksum": digest.map(|digest| format!("{:016x}", digest.checksum())),
        }}))
    }

    /// The first signal ends following, where the copy follows; the next one, or else the first, stops the copy.
    fn watch_signals(&self) -> anyhow::Result<Signals> {
        let signals = Signals {
            switch: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        let (switch, stop) = (signals.switch.clone(), signals.stop.clone());
        let mut follows = self.options.follow;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        #[expect(clippy::disallowed_methods, reason = "ends with the command")]
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                match follows {
                    true => switch.cancel(),
                    false => stop.cancel(),
                }
                follows = false;
            }
        });
        Ok(signals)
    }

    /// Shown on a terminal only.
    async fn bar(&self) -> anyhow::Result<ProgressBar> {
        let counts = self.sides.source_totals.counts().await?;
        let style =
            ProgressStyle::with_template("{bar:30} {pos} of about {len}, {eta} left, {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let rows = counts.live + counts.deleted + counts.seeded;
        Ok(ProgressBar::new(rows).with_style(style))
    }
}

fn show(bar: &ProgressBar, progress: CopyProgress) {
    match progress.stage {
        CopyStage::Copying => bar.set_position(progress.items),
        CopyStage::Following => bar.set_message(format!(
            "following: {} changes; press Ctrl-C when the source takes no more writes",
            progress.items
        )),
        CopyStage::Comparing => bar.set_message(format!("comparing: {} items", progress.items)),
    }
}

/// The exit code of a refusal is its own; those of engines are found among the causes.
fn explained(error: CopyError) -> anyhow::Error {
    match error {
        CopyError::Refused(why) => refused(why).into(),
        other => other.into(),
    }
}
