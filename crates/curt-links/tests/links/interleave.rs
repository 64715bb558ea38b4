//! D4 and D5 over random interleavings: whatever the order of reads, pauses and writes, nobody who asks after a write
//! was acknowledged sees what was there before it.
//!
//! Every future is polled by hand in a random order, the runtime that carries out the writes gets a turn at random, and
//! the store pauses for a random number of polls between reading and answering: a run is one interleaving, and its seed
//! repeats it.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use curt_core::clock::ManualClock;
use curt_core::{Alphabet, Clock, LimitedAccounts, PortResult, Visibility};
use curt_links::{
    Blocklist, EditLink, LinkMetrics, LinkPolicy, LinkSettings, Links, NewLink, Resolution,
    ResolveMetrics, Resolver, ResolverSettings,
};
use curt_memory::MemoryLinkStore;
use curt_testkit::intercept::{Call, InterceptedLinks, Interceptor};
use curt_testkit::keys::random_supply;
use tokio::runtime::Runtime;

use crate::world::{ANN, START, named, new, own};

const INTERLEAVINGS: u64 = 10_000;
const READERS: usize = 5;
/// What the key leads to, as a number that only grows: absent, the first target, another one, private, public with a
/// third target, limited, blocked, deleted.
const PRIVATE: u32 = 3;
const LIMITED: u32 = 5;
const BLOCKED: u32 = 6;
pub(crate) const DELETED: u32 = 7;

/// A small generator, so that a failing seed can be run again.
#[derive(Clone, Copy)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Lets reads and changes wait for a random number of polls, before the store and after it.
pub(crate) struct RandomDelays(pub(crate) Mutex<Dice>);

#[async_trait]
impl Interceptor for RandomDelays {
    async fn before(&self, _call: Call) -> PortResult<()> {
        let mut polls = self.0.lock().unwrap().roll(4);
        std::future::poll_fn(|context| {
            if polls == 0 {
                return Poll::Ready(Ok(()));
            }
            polls -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    async fn after(&self, call: Call) -> PortResult<()> {
        self.before(call).await
    }
}

struct Stage {
    store: Arc<InterceptedLinks<RandomDelays>>,
    clock: Arc<ManualClock>,
    policy: Arc<LinkPolicy>,
    resolver: Arc<Resolver>,
    links: Arc<Links>,
}

impl Stage {
    fn new() -> Self {
        let delays = RandomDelays(Mutex::new(Dice(1)));
        let store = InterceptedLinks::new(Arc::new(MemoryLinkStore::new()), delays);
        let clock = Arc::new(ManualClock::at(START));
        let policy = Arc::new(LinkPolicy::default());
        let resolver = Resolver::new(
            ResolverSettings::default(),
            store.clone(),
            policy.clone(),
            clock.clone(),
            ResolveMetrics::default(),
        );
        let links = Links::new(
            LinkSettings::default(),
            store.clone().into(),
            random_supply(Alphabet::Base62, 7),
            policy.clone(),
            resolver.clone(),
            clock.clone(),
            LinkMetrics::default(),
        );
        Self {
            store,
            clock,
            policy,
            resolver,
            links,
        }
    }

    /// Takes the key through everything that changes what visitors get; after each acknowledgement `acked` says how far
    /// things are.
    async fn write(&self, key: &str, acked: &Cell<u32>) {
        let new = NewLink {
            alias: Some(key.to_owned()),
            ..new("https://example.com/1")
        };
        self.links.create(ANN, new, None).await.unwrap();
        acked.set(1);
        self.edit(key, retarget(2)).await;
        acked.set(2);
        self.edit(key, visible(Visibility::Private)).await;
        acked.set(PRIVATE);
        let public = EditLink {
            visibility: Some(Visibility::Public),
            ..retarget(4)
        };
        self.edit(key, public).await;
        acked.set(4);
        self.policy.limit(LimitedAccounts {
            users: [ANN.owner].into(),
            ..LimitedAccounts::default()
        });
        acked.set(LIMITED);
        self.policy.block(Blocklist::parse(b"example.com").unwrap());
        acked.set(BLOCKED);
        self.links.delete(own(ANN), key, None).await.unwrap();
        acked.set(DELETED);
        self.policy.limit(LimitedAccounts::default());
        self.policy.block(Blocklist::default());
    }

    async fn edit(&self, key: &str, edit: EditLink) {
        self.links.edit(own(ANN), key, None, edit).await.unwrap();
    }

    /// Changes something that visitors do not see, to stir.
    async fn stir(&self, key: &str) {
        let edit = EditLink {
            title: Some(Some("stirred".into())),
            ..EditLink::default()
        };
        // The link may not be there yet, or not any more.
        drop(self.links.edit(own(ANN), key, None, edit).await);
    }

    async fn read(&self, key: &str) -> u32 {
        seen(&self.resolver.resolve(named(key)).await.unwrap())
    }
}

pub(crate) fn retarget(version: u32) -> EditLink {
    EditLink {
        target: Some(format!("https://example.com/{version}")),
        ..EditLink::default()
    }
}

fn visible(visibility: Visibility) -> EditLink {
    EditLink {
        visibility: Some(visibility),
        ..EditLink::default()
    }
}

pub(crate) fn seen(resolution: &Resolution) -> u32 {
    match resolution {
        Resolution::Absent => 0,
        Resolution::Live(hit) => hit.location()["https://example.com/".len()..]
            .parse()
            .unwrap(),
        Resolution::Guarded(link) if link.visibility == Visibility::Private => PRIVATE,
        Resolution::Guarded(_) => LIMITED,
        Resolution::Blocked => BLOCKED,
        Resolution::Scheduled | Resolution::Gone(_) => DELETED,
    }
}

pub(crate) type Actor<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

fn run(stage: &Stage, runtime: &Runtime, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    *stage.store.0.lock().unwrap() = dice;
    let key = format!("k{seed}");
    let acked = Rc::new(Cell::new(0));
    let stale: Rc<RefCell<Vec<String>>> = Rc::default();
    let mut actors: Vec<Actor<'_>> = vec![
        Box::pin(stage.write(&key, &acked)),
        Box::pin(stage.stir(&key)),
        Box::pin(stage.stir(&key)),
    ];
    let mut readers_left = READERS * 4;
    while !actors.is_empty() {
        if readers_left > 0 && actors.len() < READERS + 3 && dice.roll(2) == 0 {
            readers_left -= 1;
            let (key, acked, stale) = (&key, Rc::clone(&acked), Rc::clone(&stale));
            actors.push(Box::pin(async move {
                let before = acked.get();
                let got = stage.read(key).await;
                if got < before {
                    stale
                        .borrow_mut()
                        .push(format!("read {got} after {before} was acknowledged"));
                }
            }));
        }
        if dice.roll(2) == 0 {
            runtime.block_on(tokio::task::yield_now());
        }
        let chosen = usize::try_from(dice.roll(actors.len() as u64)).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        if actors[chosen].as_mut().poll(&mut context).is_ready() {
            drop(actors.swap_remove(chosen));
        }
        if let Some(hit) = stage.resolver.cached(named(&key), stage.clock.now()) {
            let got = seen(&Resolution::Live(hit));
            assert!(
                got >= acked.get(),
                "D4 seed {seed}: cached {got} after {}",
                acked.get()
            );
        }
    }
    assert!(
        stale.borrow().is_empty(),
        "D4 seed {seed}: {:?}",
        stale.borrow()
    );
    assert_eq!(acked.get(), DELETED, "seed {seed}");
}

#[test]
fn no_interleaving_serves_what_was_there_before_an_acknowledged_write_d4_d5() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let stage = Stage::new();
    for seed in 1..=INTERLEAVINGS {
        run(&stage, &runtime, seed);
    }
}

/// Carries out the writes. The actors are not tasks of it: there, tokio would make every poll wait after the first
/// hundred.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}
