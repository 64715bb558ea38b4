//! One run of a copy: with a bar, until it is done or told to stop.

use curt_copy::{
    CopyError, CopyNotes, CopyPhase, CopyProgress, CopyRecord, CopySettings, CopyStage, Digest,
    LinkCopy, LinkCopyReport, PartReport, StoreCopy,
};
use curt_core::ports::{AccountItem, ClickItem, Transferred};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::sides::{CopySides, refused};
use super::{CopiedPart, Copy};
use crate::exit_code::CommandError;

const LINKS: &str = "links";
const ACCOUNTS: &str = "accounts";
const CLICKS: &str = "clicks";

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

/// The parts that are copied.
struct Parts {
    links: Option<LinkCopy>,
    accounts: Option<StoreCopy<AccountItem>>,
    clicks: Option<StoreCopy<ClickItem>>,
}

impl Parts {
    /// Refuses to leave out what was begun: the copy would be taken for done.
    fn require_begun(&self, record: &CopyRecord) -> Result<(), CommandError> {
        let is_left_out = |part: &str| match part {
            LINKS => self.links.is_none(),
            ACCOUNTS => self.accounts.is_none(),
            _ => self.clicks.is_none(),
        };
        let begun = record.parts.iter();
        let mut begun = begun.filter(|(_, phase)| **phase != CopyPhase::Copied);
        let follows = record.follower.is_some() && self.links.is_none();
        let left_out = begun.find_map(|(part, _)| is_left_out(part).then_some(&**part));
        match left_out.or(follows.then_some(LINKS)) {
            None => Ok(()),
            Some(part) => Err(refused(format!(
                "--what: {part} were begun here, and are not done: name them, too"
            ))),
        }
    }
}

type Show<'a> = &'a (dyn Fn(CopyProgress) + Sync);

impl CopyRun<'_> {
    pub(super) async fn run(&self) -> anyhow::Result<Value> {
        let parts = self.parts()?;
        let mut notes = CopyNotes::load(self.sides.to.notes.clone()).await?;
        self.begin(&parts, &mut notes).await?;
        let signals = self.watch_signals()?;
        let bar = self.bar().await;
        let show = |progress: CopyProgress| show(&bar, progress);
        let done = self.copy_and_compare(&parts, &mut notes, &signals, &show);
        let done = done.await;
        bar.finish_and_clear();
        done.map_err(explained)
    }

    fn parts(&self) -> anyhow::Result<Parts> {
        let (from, to) = (&self.sides.from, &self.sides.to);
        let settings = CopySettings {
            items_per_second: Some(self.options.rate),
        };
        let copies_links = self.sides.parts.contains(&CopiedPart::Links);
        if self.options.follow && !copies_links {
            return Err(refused(
                "--follow: changes of links are followed, and --what leaves links out",
            )
            .into());
        }
        Ok(Parts {
            links: copies_links.then(|| LinkCopy {
                from: from.links.clone(),
                to: to.links.clone(),
                settings: settings.clone(),
            }),
            accounts: store_copy(ACCOUNTS, &from.accounts, &to.accounts, &settings),
            clicks: store_copy(CLICKS, &from.clicks, &to.clicks, &settings),
        })
    }

    /// Refuses a destination that another copy, or something else, has filled.
    async fn begin(&self, parts: &Parts, notes: &mut CopyNotes) -> anyhow::Result<()> {
        let source = &self.sides.from.links.identity;
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
            return Ok(parts.require_begun(&notes.record)?);
        }
        let is_empty = self.is_destination_empty(parts).await?;
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

    async fn is_destination_empty(&self, parts: &Parts) -> anyhow::Result<bool> {
        if let Some(clicks) = &parts.clicks
            && !clicks.is_destination_empty().await?
        {
            // Nothing tells whether a click is there already.
            return Err(refused(
                "--to: the clicks database is not empty, and would count clicks twice: name an empty one with --to-clicks, or \
                 leave clicks out with --what links,accounts",
            )
            .into());
        }
        let is_without_accounts = match &parts.accounts {
            Some(accounts) => accounts.is_destination_empty().await?,
            None => true,
        };
        let is_without_links = match &parts.links {
            Some(_) => self.sides.to.links.is_empty().await?,
            None => true,
        };
        Ok(is_without_accounts && is_without_links)
    }

    /// Links first, followed until the source takes no more writes: then the others do not change any more.
    async fn copy_and_compare(
        &self,
        parts: &Parts,
        notes: &mut CopyNotes,
        signals: &Signals,
        show: Show<'_>,
    ) -> Result<Value, CopyError> {
        let stop = &signals.stop;
        let switch = self.options.follow.then_some(&signals.switch);
        let mut links = LinkCopyReport::default();
        if let Some(copy) = &parts.links {
            links = copy.run(notes, switch, stop, show).await?;
        }
        let (mut accounts, mut clicks) = (PartReport::default(), PartReport::default());
        if let Some(copy) = &parts.accounts {
            accounts = copy.run(notes, stop, show).await?;
        }
        if let Some(copy) = &parts.clicks {
            clicks = copy.run(notes, stop, show).await?;
        }
        let digests = self.compare(parts, notes, stop, show).await?;
        let mut report = Map::new();
        if let Some(copy) = &parts.links {
            let has_followed = notes.record.follower.is_some();
            copy.finish(notes).await?;
            let mut told = told(&links.copied, &links.followed, digests.0.as_ref());
            told["followed"] = json!(has_followed.then_some(links.followed.items));
            report.insert(LINKS.to_owned(), told);
        }
        let none = PartReport::default();
        if parts.accounts.is_some() {
            report.insert(
                ACCOUNTS.to_owned(),
                told(&accounts, &none, digests.1.as_ref()),
            );
        }
        if parts.clicks.is_some() {
            report.insert(CLICKS.to_owned(), told(&clicks, &none, digests.2.as_ref()));
        }
        notes.record.is_done = true;
        notes.store().await?;
        Ok(Value::Object(report))
    }

    async fn compare(
        &self,
        parts: &Parts,
        notes: &CopyNotes,
        stop: &CancellationToken,
        show: Show<'_>,
    ) -> Result<(Option<Digest>, Option<Digest>, Option<Digest>), CopyError> {
        let mut digests = (None, None, None);
        if self.options.no_verify {
            return Ok(digests);
        }
        let is_into_existing = notes.record.is_into_existing;
        if let Some(copy) = &parts.links {
            digests.0 = Some(copy.verify(is_into_existing, stop, show).await?);
        }
        if let Some(copy) = &parts.accounts {
            digests.1 = Some(copy.verify(is_into_existing, stop, show).await?);
        }
        if let Some(copy) = &parts.clicks {
            digests.2 = Some(copy.verify(false, stop, show).await?);
        }
        Ok(digests)
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
    async fn bar(&self) -> ProgressBar {
        // Counting a large Cassandra takes longer than one call.
        let rows = self.sides.from.totals.counts().await;
        let rows = rows.map(|counts| counts.live + counts.deleted + counts.seeded);
        let template = match rows.is_ok() {
            true => "{bar:30} {pos} of about {len}, {eta} left, {wide_msg}",
            false => "{pos} items, {per_sec}, {wide_msg}",
        };
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = rows.map_or_else(|_| ProgressBar::no_length(), ProgressBar::new);
        bar.with_style(style)
    }
}

/// `None`: the part is not copied.
fn store_copy<Item: Transferred>(
    part: &'static str,
    from: &Option<std::sync::Arc<dyn curt_core::ports::Transfer<Item>>>,
    to: &Option<std::sync::Arc<dyn curt_core::ports::Transfer<Item>>>,
    settings: &CopySettings,
) -> Option<StoreCopy<Item>> {
    Some(StoreCopy {
        part,
        from: from.clone()?,
        to: to.clone()?,
        settings: settings.clone(),
    })
}

/// What came of a part.
fn told(copied: &PartReport, followed: &PartReport, digest: Option<&Digest>) -> Value {
    json!({
        "copied": copied.items,
        "written": copied.written + followed.written,
        "outdated": copied.outdated + followed.outdated,
        "items": digest.map(Digest::items),
        "checksum": digest.map(|digest| format!("{:016x}", digest.checksum())),
    })
}

fn show(bar: &ProgressBar, progress: CopyProgress) {
    let CopyProgress { part, items, .. } = progress;
    match progress.stage {
        CopyStage::Copying if part == LINKS => bar.set_position(items),
        CopyStage::Copying => bar.set_message(format!("{part}: {items} items")),
        CopyStage::Following => bar.set_message(format!(
            "following: {items} changes; press Ctrl-C when the source takes no more writes"
        )),
        CopyStage::Comparing => bar.set_message(format!("comparing {part}: {items} items")),
    }
}

/// The exit code of a refusal is its own; those of engines are found among the causes.
fn explained(error: CopyError) -> anyhow::Error {
    match error {
        CopyError::Refused(why) => refused(why).into(),
        other => other.into(),
    }
}
