//! One store, part by part.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use curt_core::ports::{ImportReport, Transfer, TransferPart, Transferred};
use curt_core::{PortError, PortResult};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::digest::{Comparison, Digest};
use crate::error::{CopyError, Side};
use crate::record::{CopyNotes, CopyPhase};

/// How long a call is repeated that an engine fails.
const RETRY_MAX: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Names of conflicts that are kept to be shown.
const CONFLICTS_SHOWN: usize = 10;

pub(crate) type CopyResult<T> = Result<T, CopyError>;

#[derive(Clone, Debug, Default)]
pub struct CopySettings {
    /// Items copied in a second at most. `None`: as many as the engines take.
    pub items_per_second: Option<u64>,
}

/// What a copy is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStage {
    Copying,
    /// Everything is copied, and so is what changes.
    Following,
    Comparing,
}

impl CopyStage {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::Following => "following",
            Self::Comparing => "comparing",
        }
    }
}

/// How far a stage has come.
#[derive(Clone, Copy, Debug)]
pub struct CopyProgress {
    /// What is copied.
    pub part: &'static str,
    pub stage: CopyStage,
    /// Items of this stage, of the source and, when comparing, of the destination too.
    pub items: u64,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartReport {
    pub items: u64,
    pub written: u64,
    pub outdated: u64,
    pub conflicts: u64,
    /// The first of them.
    pub conflict_names: Vec<Box<str>>,
}

impl PartReport {
    pub(crate) fn add(&mut self, items: usize, report: ImportReport) {
        self.items += items as u64;
        self.written += report.written;
        self.outdated += report.outdated;
        self.conflicts += report.conflicts.len() as u64;
        let room = CONFLICTS_SHOWN.saturating_sub(self.conflict_names.len());
        self.conflict_names
            .extend(report.conflicts.into_iter().take(room));
    }

    /// A key that belongs to something else at the destination is not copied, and is no copy.
    pub(crate) fn refuse_conflicts(&self) -> CopyResult<()> {
        if self.conflicts == 0 {
            return Ok(());
        }
        Err(CopyError::Differs(format!(
            "{} items of the source are something else at the destination and were not copied: {}",
            self.conflicts,
            self.conflict_names.join(", ")
        )))
    }
}

/// What all parts of a copy have in common.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) part: &'static str,
    pub(crate) settings: &'a CopySettings,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) progress: &'a (dyn Fn(CopyProgress) + Sync),
}

impl Run<'_> {
    pub(crate) fn show(&self, stage: CopyStage, items: u64) {
        let part = self.part;
        (self.progress)(CopyProgress { part, stage, items });
    }

    pub(crate) fn require_going(&self) -> CopyResult<()> {
        match self.stop.is_cancelled() {
            true => Err(CopyError::Stopped),
            false => Ok(()),
        }
    }

    /// Waits for as long as this many items may take.
    async fn throttle(&self, items: usize, begun: Instant) {
        let Some(most) = self.settings.items_per_second.filter(|most| *most > 0) else {
            return;
        };
        let least = Duration::from_millis((items as u64).saturating_mul(1_000) / most);
        sleep(least.saturating_sub(begun.elapsed())).await;
    }
}

/// Repeats a call while its engine is away.
pub(crate) async fn retried<T>(
    side: Side,
    mut call: impl AsyncFnMut() -> PortResult<T>,
) -> CopyResult<T> {
    let begun = Instant::now();
    loop {
        match call().await {
            Err(error) if error.is_transient() && begun.elapsed() < RETRY_MAX => {
                sleep(RETRY_PAUSE).await;
            }
            answer => return answer.map_err(|error: PortError| CopyError::at(side)(error)),
        }
    }
}

pub(crate) async fn export<Item: Transferred>(
    from: &dyn Transfer<Item>,
    side: Side,
    after: Option<&str>,
) -> CopyResult<TransferPart<Item>> {
    retried(side, async || from.export_all(after).await).await
}

pub(crate) async fn import<Item: Transferred>(
    to: &dyn Transfer<Item>,
    items: &[Item],
) -> CopyResult<ImportReport> {
    if items.is_empty() {
        return Ok(ImportReport::default());
    }
    retried(Side::Destination, async || to.import_all(items).await).await
}

/// Copies everything behind `position`, and has `note` store each position that was reached.
pub(crate) async fn copy_all<Item: Transferred>(
    run: Run<'_>,
    (from, to): (&dyn Transfer<Item>, &dyn Transfer<Item>),
    position: Option<Box<str>>,
    mut note: impl AsyncFnMut(Option<&str>) -> CopyResult<()>,
) -> CopyResult<PartReport> {
    let mut report = PartReport::default();
    let mut part = export(from, Side::Source, position.as_deref()).await?;
    loop {
        run.require_going()?;
        let begun = Instant::now();
        // The next part is read while this one is written.
        let next = async {
            match &part.next {
                Some(after) => export(from, Side::Source, Some(after)).await.map(Some),
                None => Ok(None),
            }
        };
        let (imported, next) = tokio::join!(import(to, &part.items), next);
        report.add(part.items.len(), imported?);
        run.show(CopyStage::Copying, report.items);
        note(part.next.as_deref()).await?;
        run.throttle(part.items.len(), begun).await;
        match next? {
            Some(next) => part = next,
            None => return Ok(report),
        }
    }
}

/// Copies what `notes` say is left, and notes each position that was reached.
pub(crate) async fn copy_noted<Item: Transferred>(
    run: Run<'_>,
    sides: (&dyn Transfer<Item>, &dyn Transfer<Item>),
    notes: &mut CopyNotes,
) -> CopyResult<PartReport> {
    let Some(position) = notes.record.phase(run.part).position() else {
        return Ok(PartReport::default());
    };
    let note = async |position: Option<&str>| {
        let phase = position.map_or(CopyPhase::Copied, |at| CopyPhase::At(at.into()));
        notes.store_phase(run.part, phase).await
    };
    copy_all(run, sides, position, note).await
}

/// Reads both stores and compares them. With a destination that had something before, every item of the source must be
/// there, or something newer.
pub(crate) async fn compare<Item: Transferred>(
    run: Run<'_>,
    (from, to): (&dyn Transfer<Item>, &dyn Transfer<Item>),
    is_into_existing: bool,
) -> CopyResult<Digest> {
    let seen = AtomicU64::new(0);
    let source = digest(run, from, Side::Source, &seen);
    if is_into_existing {
        let source = source.await?;
        require_imported(run, (from, to)).await?;
        return Ok(source);
    }
    // Beside each other: they are two engines, and each waits for its own.
    let copy = digest(run, to, Side::Destination, &seen);
    let (source, copy) = tokio::try_join!(source, copy)?;
    let found = source.compare(&copy);
    match found.is_same() {
        true => Ok(source),
        false => Err(differs(run.part, found)),
    }
}

/// Imports everything again, which must change nothing.
async fn require_imported<Item: Transferred>(
    run: Run<'_>,
    sides: (&dyn Transfer<Item>, &dyn Transfer<Item>),
) -> CopyResult<()> {
    let again = copy_all(run, sides, None, async |_| Ok(())).await?;
    again.refuse_conflicts()?;
    match again.written {
        0 => Ok(()),
        written => Err(CopyError::Differs(format!(
            "{written} items of the source were not at the destination as they are: it was written to meanwhile; run the copy \
             again"
        ))),
    }
}

fn differs(part: &str, found: Comparison) -> CopyError {
    CopyError::Differs(format!(
        "{part}: the destination is not what the source is: {} items there, {} here, and {} of 1024 checksums differ. The \
         source was written to meanwhile (copy links with --follow, or stop its servers), or the destination was. Empty the \
         destination, and begin again",
        found.source_items, found.destination_items, found.buckets_that_differ
    ))
}

/// Whether there is nothing to export.
pub(crate) async fn is_empty<Item: Transferred>(at: &dyn Transfer<Item>) -> CopyResult<bool> {
    let mut position: Option<Box<str>> = None;
    loop {
        let part = export(at, Side::Destination, position.as_deref()).await?;
        match part.next {
            _ if !part.items.is_empty() => return Ok(false),
            Some(next) => position = Some(next),
            None => return Ok(true),
        }
    }
}

/// Reads everything, and adds to what was seen.
async fn digest<Item: Transferred>(
    run: Run<'_>,
    from: &dyn Transfer<Item>,
    side: Side,
    seen: &AtomicU64,
) -> CopyResult<Digest> {
    let mut digest = Digest::default();
    let mut position: Option<Box<str>> = None;
    loop {
        run.require_going()?;
        let part = export(from, side, position.as_deref()).await?;
        part.items.iter().for_each(|item| digest.add(item));
        let items = part.items.len() as u64;
        let seen = seen.fetch_add(items, Ordering::Relaxed) + items;
        run.show(CopyStage::Comparing, seen);
        match part.next {
            Some(next) => position = Some(next),
            None => return Ok(digest),
        }
    }
}
