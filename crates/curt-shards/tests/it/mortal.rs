//! Nodes and maps through which a mover dies: after so many calls, none comes back any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_core::ports::{
    ChangedItems, LinkCounts, LinkShards, MapNote, MapNotes, SeededDatabase, ShardItem, ShardMaps,
    ShardPart,
};
use curt_core::{Epoch, PortResult, ShardId, ShardMap};
use tokio::sync::Notify;

/// How many calls are left, and whether the last one is still carried out.
pub(crate) struct Life {
    left: AtomicI64,
    dies_after_the_call: bool,
    woken: Notify,
}

impl Life {
    pub(crate) fn new(calls: i64, dies_after_the_call: bool) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicI64::new(calls),
            dies_after_the_call,
            woken: Notify::new(),
        })
    }

    /// Brings a dead mover back: it was only asleep.
    pub(crate) fn wake(&self) {
        self.left.store(i64::MAX, Ordering::SeqCst);
        self.woken.notify_waiters();
    }

    async fn call<T>(&self, call: impl Future<Output = T>) -> T {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left < 0 || left == 0 && !self.dies_after_the_call {
            self.woken.notified().await;
        }
        let answer = call.await;
        if left == 0 && self.dies_after_the_call {
            self.woken.notified().await;
        }
        answer
    }
}

pub(crate) struct Mortal<P: ?Sized> {
    pub(crate) inner: Arc<P>,
    pub(crate) life: Arc<Life>,
}

macro_rules! mortal {
    ($port:ident of $whole:ident: $({ $($kept:tt)* })? $(fn $method:ident($($name:ident: $type:ty),*) -> $reply:ty;)+) => {
        #[async_trait]
        impl $port for Mortal<dyn $whole> {
            $($($kept)*)?
            $(async fn $method(&self, $($name: $type),*) -> PortResult<$reply> {
                self.life.call(self.inner.$method($($name),*)).await
            })+
        }
    };
}

mortal!(LinkShards of LinkShards:
    {
        fn routed_by(&self, map: Arc<ShardMap>) -> Arc<dyn SeededDatabase> {
            self.inner.routed_by(map)
        }
    }
    fn identity() -> Box<str>;
    fn seal(shard: ShardId, epoch: Epoch) -> ();
    fn shard_counts(shard: ShardId) -> LinkCounts;
    fn track_changes(shard: ShardId, fence: u64) -> ();
    fn stop_tracking(shard: ShardId, fence: u64) -> ();
    fn export(shard: ShardId, after: Option<&str>) -> ShardPart;
    fn changes(shard: ShardId) -> ChangedItems;
    fn forget_changes(changes: &ChangedItems) -> ();
    fn begin_import(shard: ShardId, fence: u64, epoch: Epoch) -> ();
    fn import(shard: ShardId, fence: u64, items: &[ShardItem]) -> ();
    fn adopt(shard: ShardId, fence: u64, counts: &LinkCounts) -> ();
    fn retire(shard: ShardId, fence: u64, epoch: Epoch) -> ();
    fn discount(shard: ShardId, fence: u64, counts: &LinkCounts) -> ();
    fn drop_copy(shard: ShardId, fence: u64, after: Option<&str>) -> Option<Box<str>>;
);

mortal!(ShardMaps of ShardMaps:
    fn load() -> ShardMap;
    fn watch(seen: u64, wait: Duration) -> Option<ShardMap>;
    fn advance(next: &ShardMap) -> bool;
);

mortal!(MapNotes of ShardMaps:
    fn note(name: &str) -> MapNote;
    fn put_note(name: &str, note: &MapNote) -> bool;
);
