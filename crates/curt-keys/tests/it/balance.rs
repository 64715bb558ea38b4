//! More keys than were made: told apart from keys that move while they are counted.

use curt_core::link::KeyOrigin;
use curt_core::ports::{LedgerCounts, LinkCounts};
use curt_keys::{BalanceWatch, Holdings, Instance, KeyStatus, LedgerStatus, PoolStatus};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Keys by stage, moved on at random.
struct Line {
    stages: [u64; 4],
    made: u64,
    random: StdRng,
}

impl Line {
    fn new() -> Self {
        Self {
            stages: [5_000, 3_000, 800, 0],
            made: 8_800,
            random: StdRng::seed_from_u64(7),
        }
    }

    fn flow(&mut self) {
        for from in 0..3 {
            let moved = self.random.random_range(0..400).min(self.stages[from]);
            self.stages[from] -= moved;
            self.stages[from + 1] += moved;
        }
        let minted = self.random.random_range(0..400);
        self.made += minted;
        self.stages[0] += minted;
    }

    /// Reads the stages one after the other, as they are at that moment.
    fn look(&mut self, is_busy: bool) -> KeyStatus {
        let mut read = [0; 4];
        let mut made = 0;
        for (stage, keys) in read.iter_mut().enumerate() {
            if is_busy {
                self.flow();
            }
            *keys = self.stages[stage];
            if stage == 0 {
                made = self.made;
            }
        }
        status(made, read)
    }
}

fn status(minted: u64, [free, pooled, buffered, used]: [u64; 4]) -> KeyStatus {
    let mut status = KeyStatus::default();
    status.ledgers.push(LedgerStatus {
        counts: Some(LedgerCounts {
            minted,
            free,
            ..LedgerCounts::default()
        }),
        findings: Vec::new(),
        owner: None,
    });
    status.pools.push(PoolStatus {
        depth: Some(pooled),
        owner: None,
    });
    status.instances = Some(vec![Instance {
        name: "a".into(),
        who: "a".into(),
        holdings: Holdings {
            buffered,
            in_transit: 0,
        },
        conflicts: 0,
        fallbacks: 0,
    }]);
    status.links = Some(LinkCounts {
        created: vec![(KeyOrigin::Ledger, used)],
        ..LinkCounts::default()
    });
    status
}

#[test]
fn keys_that_move_are_never_taken_for_doubled_ones() {
    let (mut line, mut watch) = (Line::new(), BalanceWatch::default());
    let mut is_off = false;
    for _ in 0..1_000 {
        let look = line.look(true);
        is_off |= look.key_counts().is_some_and(|counts| !counts.balances());
        assert_eq!(watch.add(look), Some(0));
    }
    assert!(is_off, "single looks do meet keys twice");
}

#[test]
fn keys_that_came_back_are_told_to_the_key_once_nothing_moves() {
    let (mut line, mut watch) = (Line::new(), BalanceWatch::default());
    for _ in 0..10 {
        watch.add(line.look(true));
    }
    line.stages[1] += 404;
    let mut told = Vec::new();
    for _ in 0..BalanceWatch::LOOKS_TO_CONFIRM {
        told.push(watch.add(line.look(false)).unwrap());
    }
    assert_eq!(told.last(), Some(&404), "{told:?}");
    line.stages[1] -= 404;
    watch.add(line.look(false));
    assert_eq!(watch.add(line.look(false)), Some(0));
}

#[test]
fn what_does_not_answer_is_no_verdict() {
    let (mut line, mut watch) = (Line::new(), BalanceWatch::default());
    for _ in 0..10 {
        watch.add(line.look(false));
    }
    let mut silent = line.look(false);
    silent.pools[0].depth = None;
    watch.add(silent);
    assert_eq!(watch.add(line.look(false)), None);
}
