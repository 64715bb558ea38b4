//! L-2 over random interleavings with a server that changes the same links and tells nobody: whoever asks a lifetime of
//! copies or more after a change was acknowledged sees it, however slow the store's answers are and however the clock
//! leaps between two steps, as it does over a process that was stopped.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use curt_core::clock::{ManualClock, UnixMillis};
use curt_core::{Alphabet, Clock};
use curt_links::{
    LinkMetrics, LinkSettings, Links, NewLink, Resolution, ResolveMetrics, Resolver,
    ResolverSettings,
};
use curt_memory::MemoryLinkStore;
use curt_testkit::intercept::InterceptedLinks;
use curt_testkit::keys::random_supply;
use tokio::runtime::Runtime;

use crate::interleave::{Actor, DELETED, Dice, RandomDelays, retarget, runtime, seen};
use crate::world::{ANN, START, named, new, own};

const INTERLEAVINGS: u64 = 5_000;
const READERS: usize = 6;
const TTL: Duration = Duration::from_millis(20);

/// What was acknowledged by the other server, and when.
type Acked = RefCell<Vec<(UnixMillis, u32)>>;

struct TwoServers {
    store: Arc<InterceptedLinks<RandomDelays>>,
    clock: Arc<ManualClock>,
    reader: Arc<Resolver>,
    writer: Arc<Links>,
}

impl TwoServers {
    fn new() -> Self {
        let delays = RandomDelays(Mutex::new(Dice(1)));
        let store = InterceptedLinks::new(Arc::new(MemoryLinkStore::new()), delays);
        let clock = Arc::new(ManualClock::at(START));
        let resolver = || {
            let settings = ResolverSettings {
                entry_ttl: Some(TTL),
                negative_ttl: TTL,
                ..ResolverSettings::default()
            };
            let metrics = ResolveMetrics::default();
            Resolver::new(
                settings,
                store.clone(),
                Arc::default(),
                clock.clone(),
                metrics,
            )
        };
        let writer = Links::new(
            LinkSettings::default(),
            store.clone().into(),
            random_supply(Alphabet::Base62, 7),
            Arc::default(),
            resolver(),
            clock.clone(),
            LinkMetrics::default(),
        );
        Self {
            reader: resolver(),
            writer,
            store,
            clock,
        }
    }

    async fn write(&self, key: &str, acked: &Acked) {
        let ack = |version| acked.borrow_mut().push((self.clock.now(), version));
        let new = NewLink {
            alias: Some(key.to_owned()),
            ..new("https://example.com/1")
        };
        self.writer.create(ANN, new, None).await.unwrap();
        ack(1);
        for version in 2..=3 {
            let edit = retarget(version);
            self.writer.edit(own(ANN), key, None, edit).await.unwrap();
            ack(version);
        }
        self.writer.delete(own(ANN), key, None).await.unwrap();
        ack(DELETED);
    }

    /// The least that a request of now must see.
    fn due(&self, acked: &Acked) -> u32 {
        let now = self.clock.now();
        let acked = acked.borrow();
        let due = acked.iter().filter(|(at, _)| now.since(*at) >= TTL);
        due.map(|(_, version)| *version).max().unwrap_or(0)
    }
}

fn run(servers: &TwoServers, runtime: &Runtime, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    *servers.store.0.lock().unwrap() = dice;
    let key = format!("k{seed}");
    let acked = Rc::new(Acked::default());
    let stale: Rc<RefCell<Vec<String>>> = Rc::default();
    let mut actors: Vec<Actor<'_>> = vec![Box::pin(servers.write(&key, &acked))];
    let mut readers_left = READERS * 6;
    while !actors.is_empty() {
        let leap = if dice.roll(30) == 0 { 20 } else { 0 };
        let step = Duration::from_millis(dice.roll(3) + leap);
        servers.clock.advance(step);
        if readers_left > 0 && actors.len() < READERS + 1 && dice.roll(2) == 0 {
            readers_left -= 1;
            let (key, acked, stale) = (&key, Rc::clone(&acked), Rc::clone(&stale));
            actors.push(Box::pin(async move {
                let due = servers.due(&acked);
                let got = seen(&servers.reader.resolve(named(key)).await.unwrap());
                if got < due {
                    stale.borrow_mut().push(format!("{got} instead of {due}"));
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
        if let Some(hit) = servers.reader.cached(named(&key), servers.clock.now()) {
            let (got, due) = (seen(&Resolution::Live(hit)), servers.due(&acked));
            assert!(got >= due, "L-2 seed {seed}: cached {got} instead of {due}");
        }
    }
    let stale = stale.borrow();
    assert!(stale.is_empty(), "L-2 seed {seed}: {stale:?}");
}

#[test]
fn no_interleaving_serves_longer_than_a_copy_lives_what_another_server_changed_l2() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let servers = TwoServers::new();
    for seed in 1..=INTERLEAVINGS {
        run(&servers, &runtime, seed);
    }
}
