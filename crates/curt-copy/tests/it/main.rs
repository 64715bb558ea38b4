//! Copies that are stopped, raced, written beside and cut off from their engines.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, helpers of tests included"
)]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use curt_copy::{CopyError, CopyNotes, CopyProgress, CopyRecord, CopySettings, LinkCopy, LinkSide};
use curt_core::ports::{
    FollowedChanges, ImportReport, LinkItem, LinkStore as _, LinkTransfer, Transfer, TransferPart,
};
use curt_core::{ErrorKind, Link, PortError, PortResult, Revision};
use curt_memory::{MemoryLinkStore, MemoryShardMaps};
use curt_sqlite::{Sqlite, SqliteSettings, Synchronous};
use curt_testkit::sample::{NOW, SampleWrites as _, id, later, link};
use tokio_util::sync::CancellationToken;

/// A store whose calls fail, or stop the copy, when their number comes.
struct Interrupted {
    store: Arc<dyn LinkTransfer>,
    calls: AtomicUsize,
    fails_at: HashSet<usize>,
    stops_at: Option<usize>,
    stop: CancellationToken,
}

impl Interrupted {
    fn new(store: Arc<dyn LinkTransfer>) -> Self {
        Self {
            store,
            calls: AtomicUsize::new(0),
            fails_at: HashSet::new(),
            stops_at: None,
            stop: CancellationToken::new(),
        }
    }

    /// What is done before a call. After a stop nothing comes through any more, as after kill -9.
    fn pass(&self) -> PortResult<()> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if self.stops_at.is_some_and(|at| call >= at) {
            self.stop.cancel();
            return Err(PortError::new(ErrorKind::Bug, "test", "go on", "killed"));
        }
        match self.fails_at.contains(&call) {
            true => Err(PortError::new(
                ErrorKind::Unavailable,
                "test",
                "answer",
                "away",
            )),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Transfer<LinkItem> for Interrupted {
    async fn export_all(&self, after: Option<&str>) -> PortResult<TransferPart<LinkItem>> {
        self.pass()?;
        self.store.export_all(after).await
    }

    async fn import_all(&self, items: &[LinkItem]) -> PortResult<ImportReport> {
        self.pass()?;
        self.store.import_all(items).await
    }
}

#[async_trait]
impl LinkTransfer for Interrupted {
    async fn follow_changes(&self, follower: u64) -> PortResult<()> {
        self.pass()?;
        self.store.follow_changes(follower).await
    }

    async fn followed_changes(&self, follower: u64) -> PortResult<FollowedChanges> {
        self.pass()?;
        self.store.followed_changes(follower).await
    }

    async fn forget_followed(&self, numbers: &[i64]) -> PortResult<()> {
        self.pass()?;
        self.store.forget_followed(numbers).await
    }

    async fn stop_following(&self, follower: Option<u64>) -> PortResult<()> {
        self.pass()?;
        self.store.stop_following(follower).await
    }
}

fn side(transfer: Arc<dyn LinkTransfer>, identity: &str) -> LinkSide {
    let identity = identity.into();
    LinkSide { transfer, identity }
}

fn copy(from: Arc<dyn LinkTransfer>, to: Arc<dyn LinkTransfer>) -> LinkCopy {
    LinkCopy {
        from: side(from, "from"),
        to: side(to, "to"),
        settings: CopySettings::default(),
    }
}

async fn filled(count: u64) -> Arc<MemoryLinkStore> {
    let store = Arc::new(MemoryLinkStore::new());
    for first in (0..count).step_by(500) {
        let links = (first..count.min(first + 500)).map(made);
        store.insert(links.collect()).await.unwrap();
    }
    for n in (0..count).step_by(9) {
        store.delete(&id(&format!("k{n}")), NOW).await.unwrap();
    }
    store
}

fn made(n: u64) -> Link {
    Link {
        created_at: later(n),
        updated_at: later(n),
        ..link(&format!("k{n}"))
    }
}

/// Runs a copy to its end, and tells the destination that it is done.
async fn run(
    copy: &LinkCopy,
    notes: &mut CopyNotes,
    switch: Option<&CancellationToken>,
    stop: &CancellationToken,
) -> Result<(), CopyError> {
    let show = |_: CopyProgress| {};
    copy.run(notes, switch, stop, &show).await?;
    copy.verify(false, stop, &show).await?;
    copy.finish(notes).await?;
    notes.record.is_done = true;
    notes.store().await
}

async fn begin(maps: &Arc<MemoryShardMaps>) -> CopyNotes {
    let mut notes = CopyNotes::load(maps.clone()).await.unwrap();
    notes.record = CopyRecord {
        source: "from".into(),
        ..CopyRecord::default()
    };
    notes.store().await.unwrap();
    notes
}

/// A copy that dies at every call in turn, of the source or of the destination, comes to the same end.
#[tokio::test]
async fn a_copy_that_dies_at_any_call_goes_on_to_the_same_end_k1() {
    for dies_at_source in [true, false] {
        for follows in [false, true] {
            die_at_every_call(dies_at_source, follows).await;
        }
    }
}

async fn die_at_every_call(dies_at_source: bool, follows: bool) {
    let (from, to) = (filled(2_200).await, Arc::new(MemoryLinkStore::new()));
    let maps = Arc::new(MemoryShardMaps::new());
    drop(begin(&maps).await);
    let switch = CancellationToken::new();
    switch.cancel();
    let mut deaths = 0;
    loop {
        let mortal = |store: Arc<MemoryLinkStore>, is_mortal: bool| Interrupted {
            // Each time one call later, so that it comes to its end at last.
            stops_at: is_mortal.then_some(deaths),
            ..Interrupted::new(store)
        };
        let source = Arc::new(mortal(from.clone(), dies_at_source));
        let destination = Arc::new(mortal(to.clone(), !dies_at_source));
        let stop = match dies_at_source {
            true => source.stop.clone(),
            false => destination.stop.clone(),
        };
        let mut notes = CopyNotes::load(maps.clone()).await.unwrap();
        // Written while no copy runs: a source that is followed remembers it.
        if follows && deaths > 2 {
            let edited = Link {
                title: Some(format!("{deaths}").into()),
                ..made(1)
            };
            let seen = from.get(&edited.id).await.unwrap().unwrap().revision;
            from.update_at(edited, seen).await.unwrap();
        }
        let switch = follows.then_some(&switch);
        match run(&copy(source, destination), &mut notes, switch, &stop).await {
            Ok(()) => break,
            Err(_) => deaths += 1,
        }
        assert!(deaths < 100, "it does not come to its end");
    }
    assert!(deaths > 2, "died {deaths} times only");
    let show = |_: CopyProgress| {};
    let whole = copy(from.clone(), to.clone());
    let stop = CancellationToken::new();
    whole.verify(false, &stop, &show).await.unwrap();
    let edited = id("k1");
    assert_eq!(
        from.get(&edited).await.unwrap(),
        to.get(&edited).await.unwrap()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_written_to_is_followed_until_the_switch() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SqliteSettings {
        synchronous: Synchronous::Normal,
        ..SqliteSettings::default()
    };
    let file = Sqlite::open(folder.path().join("curt.db"), settings).unwrap();
    let links = file.links();
    links.insert((0..900).map(made).collect()).await.unwrap();
    let to = Arc::new(MemoryLinkStore::new());
    let maps = Arc::new(MemoryShardMaps::new());
    let (switch, stop) = (CancellationToken::new(), CancellationToken::new());
    let has_ended = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (links, switch, has_ended) = (links.clone(), switch.clone(), has_ended.clone());
        async move {
            for n in 900..1_900 {
                links.insert(vec![made(n)]).await.unwrap();
                let edited = Link {
                    title: Some("edited".into()),
                    ..made(n - 900)
                };
                links.update_at(edited, Revision::FIRST).await.unwrap();
            }
            has_ended.store(true, Ordering::SeqCst);
            switch.cancel();
        }
    });
    let mut notes = begin(&maps).await;
    let whole = copy(file.link_transfer(Arc::default()), to.clone());
    run(&whole, &mut notes, Some(&switch), &stop).await.unwrap();
    assert!(
        has_ended.load(Ordering::SeqCst),
        "it ended before the switch"
    );
    writer.await.unwrap();
    for n in [0, 899, 900, 1_899] {
        let of = made(n).id;
        assert_eq!(to.get(&of).await.unwrap(), links.get(&of).await.unwrap());
    }
    file.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_away_for_a_moment_is_asked_again() {
    let (from, to) = (filled(1_500).await, Arc::new(MemoryLinkStore::new()));
    let away = |store| Interrupted {
        fails_at: (0..40).filter(|call| call % 3 > 0).collect(),
        ..Interrupted::new(store)
    };
    let maps = Arc::new(MemoryShardMaps::new());
    let mut notes = begin(&maps).await;
    let whole = copy(Arc::new(away(from)), Arc::new(away(to)));
    run(&whole, &mut notes, None, &CancellationToken::new())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_copy_that_differs_from_its_source_is_told() {
    let (from, to) = (filled(300).await, Arc::new(MemoryLinkStore::new()));
    let maps = Arc::new(MemoryShardMaps::new());
    let (mut notes, stop) = (begin(&maps).await, CancellationToken::new());
    let whole = copy(from.clone(), to.clone());
    let show = |_: CopyProgress| {};
    whole.run(&mut notes, None, &stop, &show).await.unwrap();
    whole.verify(false, &stop, &show).await.unwrap();
    let edited = Link {
        title: Some("changed".into()),
        ..made(1)
    };
    from.update_at(edited, Revision::FIRST).await.unwrap();
    let found = whole.verify(false, &stop, &show).await;
    assert!(matches!(found, Err(CopyError::Differs(_))), "{found:?}");
    from.delete(&id("k2"), NOW).await.unwrap();
    to.insert(vec![link("other")]).await.unwrap();
    let found = whole.verify(false, &stop, &show).await;
    assert!(matches!(found, Err(CopyError::Differs(_))), "{found:?}");
}

#[tokio::test]
async fn of_two_copies_to_one_destination_one_is_refused() {
    let (from, to) = (filled(3_000).await, Arc::new(MemoryLinkStore::new()));
    let maps = Arc::new(MemoryShardMaps::new());
    let (mut first, stop) = (begin(&maps).await, CancellationToken::new());
    let mut second = CopyNotes::load(maps.clone()).await.unwrap();
    let whole = copy(from, to);
    run(&whole, &mut first, None, &stop).await.unwrap();
    let late = run(&whole, &mut second, None, &stop).await;
    assert!(matches!(late, Err(CopyError::TakenOver)), "{late:?}");
}
