//! Links, of a source at rest or in use.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use curt_core::ports::{FOLLOWER_MIN, LinkItem, LinkTransfer, ShardItem};
use curt_core::{ErrorKind, KeyOrigin, ShardId};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::digest::Digest;
use crate::error::{CopyError, Side};
use crate::part::{
    CopyProgress, CopyResult, CopySettings, CopyStage, PartReport, Run, compare, copy_noted,
    import, is_empty, retried,
};
use crate::record::{CopyNotes, CopyPhase};

const PART: &str = "links";
/// How often a source in use is asked what has changed.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

/// A links database as one side of a copy.
#[derive(Clone)]
pub struct LinkSide {
    pub transfer: Arc<dyn LinkTransfer>,
    /// The name by which the database is known from all others.
    pub identity: Box<str>,
}

impl LinkSide {
    /// Whether nothing was ever stored there.
    pub async fn is_empty(&self) -> Result<bool, CopyError> {
        is_empty(&*self.transfer).await
    }
}

/// A copy of one links database to another.
pub struct LinkCopy {
    pub from: LinkSide,
    pub to: LinkSide,
    pub settings: CopySettings,
}

/// What was copied.
#[derive(Clone, Debug, Default)]
pub struct LinkCopyReport {
    pub copied: PartReport,
    /// Changes that were copied after everything had been.
    pub followed: PartReport,
    /// Of the source, and equal at the destination. `None`: it was not compared.
    pub digest: Option<Digest>,
}

impl LinkCopy {
    /// Copies everything, or goes on where `notes` say. With `switch`, or where the copy followed before, changes of the
    /// source are copied too: until `switch` is told that the source takes no more writes.
    pub async fn run(
        &self,
        notes: &mut CopyNotes,
        switch: Option<&CancellationToken>,
        stop: &CancellationToken,
        progress: &(dyn Fn(CopyProgress) + Sync),
    ) -> Result<LinkCopyReport, CopyError> {
        let run = Run {
            part: PART,
            settings: &self.settings,
            stop,
            progress,
        };
        let follower = self.begin_following(notes, switch.is_some()).await?;
        let mut report = LinkCopyReport {
            copied: self.copy(run, notes).await?,
            ..LinkCopyReport::default()
        };
        if let Some(follower) = follower {
            report.followed = self.follow(run, follower, switch).await?;
        }
        report.copied.refuse_conflicts()?;
        report.followed.refuse_conflicts()?;
        Ok(report)
    }

    /// Reads both databases and compares them. With a destination that had something before, every item of the source must
    /// be there, or something newer.
    pub async fn verify(
        &self,
        is_into_existing: bool,
        stop: &CancellationToken,
        progress: &(dyn Fn(CopyProgress) + Sync),
    ) -> Result<Digest, CopyError> {
        let run = Run {
            part: PART,
            settings: &self.settings,
            stop,
            progress,
        };
        compare(
            run,
            (&*self.from.transfer, &*self.to.transfer),
            is_into_existing,
        )
        .await
    }

    /// Ends what [`run`](Self::run) began at the source.
    pub async fn finish(&self, notes: &mut CopyNotes) -> Result<(), CopyError> {
        if let Some(follower) = notes.record.follower {
            let from = &self.from.transfer;
            retried(Side::Source, async || {
                from.stop_following(Some(follower)).await
            })
            .await?;
        }
        Ok(())
    }

    async fn begin_following(
        &self,
        notes: &mut CopyNotes,
        is_asked: bool,
    ) -> CopyResult<Option<u64>> {
        let follower = match notes.record.follower {
            Some(follower) => follower,
            None if is_asked => {
                let follower = FOLLOWER_MIN | (rand::random::<u64>() >> 2);
                notes.record.follower = Some(follower);
                // What was copied before has changed since, and nothing remembers it.
                notes.store_phase(PART, CopyPhase::New).await?;
                follower
            }
            None => return Ok(None),
        };
        let from = &self.from.transfer;
        let begun = retried(Side::Source, async || from.follow_changes(follower).await).await;
        match begun {
            Err(CopyError::Port { error, .. }) if error.kind == ErrorKind::StaleEpoch => {
                let why = "another copy follows the source, or its shards are moving: wait for it; or, if it was given \
                           up, run `curt copy --from URL --abandon`";
                Err(CopyError::Refused(why.into()))
            }
            Err(CopyError::Port { error, .. }) if error.kind == ErrorKind::Invalid => {
                // It cannot be followed, and a copy without that may go on here.
                notes.record.follower = None;
                notes.store().await?;
                Err(CopyError::Refused(format!("--follow: {}", error.detail)))
            }
            begun => begun.map(|()| Some(follower)),
        }
    }

    async fn copy(&self, run: Run<'_>, notes: &mut CopyNotes) -> CopyResult<PartReport> {
        let (from, to) = (&*self.from.transfer, &*self.to.transfer);
        let copied = copy_noted::<LinkItem>(run, (from, to), notes).await;
        match copied {
            Err(CopyError::Port {
                side: Side::Source,
                error,
            }) if error.kind == ErrorKind::StaleEpoch => {
                // A shard may have gone to a node that was read already.
                notes.store_phase(PART, CopyPhase::New).await?;
                Err(moved(Side::Source))
            }
            Err(CopyError::Port { side, error }) if error.kind == ErrorKind::StaleEpoch => {
                Err(moved(side))
            }
            copied => copied,
        }
    }

    /// Copies changes until the source takes no more writes.
    async fn follow(
        &self,
        run: Run<'_>,
        follower: u64,
        switch: Option<&CancellationToken>,
    ) -> CopyResult<PartReport> {
        let mut report = PartReport::default();
        let mut released = HashMap::new();
        loop {
            // Asked before the pass: what was written until then is in it.
            let is_last = switch.is_none_or(CancellationToken::is_cancelled);
            self.copy_changes(run, follower, &mut report, &mut released)
                .await?;
            if is_last {
                return Ok(report);
            }
            tokio::select! {
                () = sleep(FOLLOW_EVERY) => {}
                () = cancelled(switch) => {}
                () = run.stop.cancelled() => return Err(CopyError::Stopped),
            }
        }
    }

    /// Copies everything that has changed.
    async fn copy_changes(
        &self,
        run: Run<'_>,
        follower: u64,
        report: &mut PartReport,
        released: &mut HashMap<(ShardId, KeyOrigin), u64>,
    ) -> CopyResult<()> {
        let from = &self.from.transfer;
        loop {
            run.require_going()?;
            let mut changes =
                retried(Side::Source, async || from.followed_changes(follower).await).await?;
            changes.items.retain(|item| is_news(item, released));
            let imported = import(&*self.to.transfer, &changes.items).await?;
            report.add(changes.items.len(), imported);
            if !changes.numbers.is_empty() {
                let numbers = &changes.numbers;
                retried(Side::Source, async || from.forget_followed(numbers).await).await?;
            }
            run.show(CopyStage::Following, report.items);
            if changes.is_end {
                return Ok(());
            }
        }
    }
}

/// How many keys were released is told with all changes.
fn is_news(item: &LinkItem, released: &mut HashMap<(ShardId, KeyOrigin), u64>) -> bool {
    match item.item {
        ShardItem::Released { origin, count } => {
            released.insert((item.shard, origin), count) != Some(count)
        }
        _ => true,
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

fn moved(side: Side) -> CopyError {
    CopyError::Refused(format!(
        "{side}: its shards were moved between nodes meanwhile: run the copy again with --resume, and let no shard move until it \
         is done"
    ))
}
