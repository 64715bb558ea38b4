//! One table: open addressing with linear probing, and two ways to leave it.
//!
//! A newcomer is on probation, in a queue that may hold a tenth of the table. Whoever has not been asked for again when
//! their turn comes is the first to go, so that a walk through all links pushes out hardly anything but its own. The
//! others stay under a clock hand: each use, up to three, saves a copy from one pass. A hash that comes back soon after
//! it left probation was sent away too early and is taken in for good.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use curt_core::LinkRef;

use crate::resolve::record::Hit;

/// The lowest bits of a slot's tag: how often it was used, up to three times, and whether it is on probation. The
/// others are the hash.
const USES: u64 = 0b011;
const PROBATION: u64 = 0b100;
const FLAGS: u64 = USES | PROBATION;
/// The highest bits of a hash have chosen the table.
pub(super) const TABLE_BITS: u32 = 8;

/// Rounds of the hand in which everybody settled has lost their last use and one has left.
const ROUNDS_MAX: usize = USES as usize + 1;
const SLOTS_MIN: usize = 16;
/// Of the bytes, what newcomers may take before they have to leave.
const PROBATION_SHARE: u64 = 10;
/// One remembered hash of somebody who left for so many slots.
const SLOTS_PER_GHOST: usize = 2;
/// The queue of newcomers is at most so much shorter than the table.
const SLOTS_PER_NEWCOMER: usize = 4;
/// What a link costs beside its own allocation: its slot, and its share of the empty ones and of the memory of those
/// who left. Measured with `examples/l1_memory.rs`.
const SLOT_BYTES: u64 = 54;
/// The counters of an `Arc`, in front of its bytes, and what the allocator adds for itself.
const ALLOCATION_EXTRA: usize = 16 + 8;
/// What allocators round sizes of this order up to.
const ALLOCATION_STEP: usize = 16;

pub(super) struct Table {
    /// Never all in use.
    slots: Box<[Slot]>,
    links: usize,
    bytes: u64,
    bytes_max: u64,
    probation_bytes: u64,
    /// Hashes of those who came in on probation, oldest first; some may have left already.
    newcomers: VecDeque<u64>,
    /// Parts of hashes of those who left it, each where its hash leads.
    ghosts: Box<[u32]>,
    /// Where the next search for somebody to evict begins.
    hand: usize,
    /// How far the hand moves: by leaps that reach every slot once in a round. Going from neighbour to neighbour, it
    /// would leave the slots behind it empty and those before it crowded.
    leap: usize,
}

#[derive(Default)]
struct Slot {
    tag: AtomicU64,
    copy: Option<Hit>,
}

impl Table {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            slots: empty(SLOTS_MIN),
            links: 0,
            bytes: 0,
            bytes_max,
            probation_bytes: 0,
            newcomers: VecDeque::new(),
            ghosts: no_ghosts(SLOTS_MIN),
            hand: 0,
            leap: leap(SLOTS_MIN),
        }
    }

    pub(super) fn links(&self) -> usize {
        self.links
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets everything and gives the memory back.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.bytes_max);
    }

    pub(super) fn get(&self, hash: u64, link: LinkRef<'_>) -> Option<&Hit> {
        let slot = &self.slots[self.find(hash, link)?];
        slot.note_use();
        slot.copy.as_ref()
    }

    /// Holds `copy` from now on, in place of an older one of the same link. One that is larger than the whole table is
    /// not held.
    pub(super) fn insert(&mut self, hash: u64, link: LinkRef<'_>, copy: Hit) {
        self.remove_if(hash, link, |_| true);
        let bytes = weight(&copy);
        if bytes > self.bytes_max {
            return;
        }
        while self.bytes + bytes > self.bytes_max {
            self.make_room();
        }
        if (self.links + 1) * 5 > self.slots.len() * 4 {
            self.grow();
        }
        self.links += 1;
        self.bytes += bytes;
        let mut tag = hash & !FLAGS;
        if !self.was_here(tag) {
            self.probation_bytes += bytes;
            self.queue(tag);
            tag |= PROBATION;
        }
        self.place(Slot {
            tag: AtomicU64::new(tag),
            copy: Some(copy),
        });
    }

    /// Removes the copy of `link` if there is one and `condition` holds for it, and says whether it did.
    pub(super) fn remove_if(
        &mut self,
        hash: u64,
        link: LinkRef<'_>,
        condition: impl FnOnce(&Hit) -> bool,
    ) -> bool {
        let Some(at) = self.find(hash, link) else {
            return false;
        };
        let remove = self.slots[at].copy.as_ref().is_some_and(condition);
        if remove {
            // A link that has changed is as popular as before.
            self.remember(hash);
            self.remove_at(at);
        }
        remove
    }

    /// Whether the sums are those of what is held, and everybody on probation waits in the queue.
    #[cfg(test)]
    pub(super) fn has_kept_count(&self) -> bool {
        let held = || self.slots.iter().filter(|slot| slot.copy.is_some());
        let newcomers = || held().filter(|slot| slot.is_on_probation());
        let weigh = |slot: &Slot| slot.copy.as_ref().map_or(0, weight);
        let queued: std::collections::HashSet<u64> = self.newcomers.iter().copied().collect();
        held().count() == self.links
            && held().map(weigh).sum::<u64>() == self.bytes
            && newcomers().map(weigh).sum::<u64>() == self.probation_bytes
            && newcomers().all(|slot| queued.contains(&(slot.tag.load(Ordering::Relaxed) & !FLAGS)))
    }

    fn find(&self, hash: u64, link: LinkRef<'_>) -> Option<usize> {
        self.find_where(hash, |_, copy| copy.is_of(link))
    }

    fn find_where(&self, hash: u64, is_it: impl Fn(&Slot, &Hit) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            let slot = &self.slots[at];
            let copy = slot.copy.as_ref()?;
            if slot.is_tagged(hash) && is_it(slot, copy) {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    /// The slot where the search for a hash begins: the hash as a fraction of the table, without the bits that chose
    /// the table and those that are flags.
    fn home(&self, hash: u64) -> usize {
        fraction(hash, self.slots.len())
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() {
            0
        } else {
            at + 1
        }
    }

    /// Slots from `start` to `end`, round the end of the table if need be.
    fn distance(&self, start: usize, end: usize) -> usize {
        if end >= start {
            end - start
        } else {
            end + self.slots.len() - start
        }
    }

    /// Into the first free slot from its home on.
    fn place(&mut self, slot: Slot) {
        let mut at = self.home(slot.tag.load(Ordering::Relaxed));
        while self.slots[at].copy.is_some() {
            at = self.after(at);
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        // By a quarter: twice as many would be half empty at once, and memory is what bounds this cache.
        let count = self.slots.len() + self.slots.len() / 4;
        for slot in std::mem::replace(&mut self.slots, empty(count)) {
            if slot.copy.is_some() {
                self.place(slot);
            }
        }
        self.ghosts = no_ghosts(count);
        self.hand = 0;
        self.leap = leap(count);
    }

    /// Sends somebody away, or takes a newcomer in for good. Only called while a copy is there.
    fn make_room(&mut self) {
        let crowded = self.probation_bytes > self.bytes_max / PROBATION_SHARE;
        if crowded || self.probation_bytes == self.bytes {
            self.judge_newcomer();
        } else {
            self.evict_one();
        }
    }

    fn judge_newcomer(&mut self) {
        let Some(hash) = self.newcomers.pop_front() else {
            return self.start_over();
        };
        let Some(at) = self.find_where(hash, |slot, _| slot.is_on_probation()) else {
            return;
        };
        if self.slots[at].take_use() {
            self.settle(at);
        } else {
            self.remember(hash);
            self.remove_at(at);
        }
    }

    fn evict_one(&mut self) {
        for _ in 0..ROUNDS_MAX * self.slots.len() {
            let slot = &mut self.slots[self.hand];
            let settled = slot.copy.is_some() && !slot.is_on_probation();
            if settled && !slot.take_use() {
                // What moves into the hole is looked at next.
                return self.remove_at(self.hand);
            }
            self.hand = (self.hand + self.leap) % self.slots.len();
        }
        self.start_over();
    }

    /// The sums say that somebody can leave, and nobody can: a mistake in this file. An empty table costs a few loads;
    /// a search without end, under a lock that redirects wait for, would cost the server.
    fn start_over(&mut self) {
        debug_assert!(false, "the sums are those of what is held");
        tracing::error!(
            links = self.links,
            bytes = self.bytes,
            probation_bytes = self.probation_bytes,
            newcomers = self.newcomers.len(),
            "a part of the link cache lost count and starts empty"
        );
        self.clear();
    }

    /// Empties the slot and moves up whoever would not be found behind the hole.
    fn remove_at(&mut self, at: usize) {
        let Some(copy) = self.slots[at].copy.take() else {
            return;
        };
        let bytes = weight(&copy);
        self.links -= 1;
        self.bytes -= bytes;
        if self.slots[at].is_on_probation() {
            self.probation_bytes -= bytes;
        }
        let (mut hole, mut next) = (at, self.after(at));
        while self.slots[next].copy.is_some() {
            let home = self.home(self.slots[next].tag.load(Ordering::Relaxed));
            if self.distance(home, next) >= self.distance(hole, next) {
                self.slots.swap(hole, next);
                hole = next;
            }
            next = self.after(next);
        }
    }

    /// While there is room for everybody nobody is judged, and the queue would grow with the table: whoever has waited
    /// behind so many is taken in.
    fn queue(&mut self, tag: u64) {
        if self.newcomers.len() >= self.slots.len() / SLOTS_PER_NEWCOMER
            && let Some(oldest) = self.newcomers.pop_front()
            && let Some(at) = self.find_where(oldest, |slot, _| slot.is_on_probation())
        {
            self.settle(at);
        }
        self.newcomers.push_back(tag);
    }

    fn settle(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        *slot.tag.get_mut() &= !PROBATION;
        self.probation_bytes -= slot.copy.as_ref().map_or(0, weight);
    }

    fn remember(&mut self, hash: u64) {
        let at = fraction(hash, self.ghosts.len());
        self.ghosts[at] = ghost(hash);
    }

    fn was_here(&self, hash: u64) -> bool {
        self.ghosts[fraction(hash, self.ghosts.len())] == ghost(hash)
    }
}

impl Slot {
    fn is_tagged(&self, hash: u64) -> bool {
        (self.tag.load(Ordering::Relaxed) ^ hash) & !FLAGS == 0
    }

    fn is_on_probation(&self) -> bool {
        self.tag.load(Ordering::Relaxed) & PROBATION != 0
    }

    /// Look-ups at the same time may count as one: it is a hint. A full counter is not written to, so that the hottest
    /// links' slots stay in every core's cache.
    fn note_use(&self) {
        let tag = self.tag.load(Ordering::Relaxed);
        if tag & USES != USES {
            self.tag.store(tag + 1, Ordering::Relaxed);
        }
    }

    /// Whether there was a use left to take.
    fn take_use(&mut self) -> bool {
        let tag = self.tag.get_mut();
        let used = *tag & USES != 0;
        *tag -= u64::from(used);
        used
    }
}

/// Where a hash leads among so many places.
fn fraction(hash: u64, places: usize) -> usize {
    let fraction = u128::from((hash & !FLAGS) << TABLE_BITS);
    ((fraction * places as u128) >> u64::BITS) as usize
}

/// Never that of an empty place.
fn ghost(hash: u64) -> u32 {
    (hash & !FLAGS) as u32 | 1
}

/// Near the golden section of the table, which spreads the places best, and without a common divisor with its length.
fn leap(slots: usize) -> usize {
    let section = slots * 618 / 1_000;
    let reaches_all = |leap: &usize| greatest_common_divisor(*leap, slots) == 1;
    (section..slots).find(reaches_all).unwrap_or(1)
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

fn empty(slots: usize) -> Box<[Slot]> {
    (0..slots).map(|_| Slot::default()).collect()
}

fn no_ghosts(slots: usize) -> Box<[u32]> {
    vec![0; slots / SLOTS_PER_GHOST].into_boxed_slice()
}

fn weight(copy: &Hit) -> u64 {
    let allocated = (ALLOCATION_EXTRA + copy.len()).next_multiple_of(ALLOCATION_STEP);
    SLOT_BYTES + allocated as u64
}
