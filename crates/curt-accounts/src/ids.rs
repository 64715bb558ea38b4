//! Numbers of users: snowflakes of 41 bits of time, 10 of machine and 12 of sequence.

use std::sync::{Mutex, PoisonError};

use curt_core::{OwnerId, UnixMillis};
use rand::RngExt;

/// 2024-01-01T00:00:00Z, where the milliseconds of an id start.
const EPOCH: UnixMillis = UnixMillis(1_704_067_200_000);
const TIME_BITS: u32 = 41;
const MACHINE_BITS: u32 = 10;
const SEQUENCE_BITS: u32 = 12;

/// Makes ids that grow with time. Two processes may draw the same machine number; the store refuses a taken id, and
/// the caller asks for another.
pub(crate) struct UserIds {
    machine: u64,
    last: Mutex<Tick>,
}

#[derive(Clone, Copy, Default)]
struct Tick {
    millis: u64,
    sequence: u64,
}

impl UserIds {
    pub(crate) fn new() -> Self {
        Self {
            machine: rand::rng().random_range(0..1 << MACHINE_BITS),
            last: Mutex::default(),
        }
    }

    /// Never [`OwnerId::ANONYMOUS`], never twice, and larger than the one before even when the clock steps back.
    pub(crate) fn next(&self, now: UnixMillis) -> OwnerId {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = u64::try_from(now.since(EPOCH).as_millis()).unwrap_or(u64::MAX);
        // The bound leaves room to count on after the last millisecond that fits.
        let millis = millis.clamp(1, (1 << TIME_BITS) - (1 << 20));
        if millis > last.millis {
            *last = Tick {
                millis,
                sequence: 0,
            };
        } else {
            last.sequence += 1;
            if last.sequence >> SEQUENCE_BITS != 0 {
                last.millis += 1;
                last.sequence = 0;
            }
        }
        let place = (last.millis << MACHINE_BITS) | self.machine;
        OwnerId((place << SEQUENCE_BITS) | last.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_and_fit_whatever_the_clock_says() {
        let ids = UserIds::new();
        let mut last = OwnerId::ANONYMOUS;
        let times = [0, -5, 1_704_067_200_000, 1_900_000_000_000, 1, i64::MAX, 0];
        for now in times.map(UnixMillis) {
            for _ in 0..5_000 {
                let id = ids.next(now);
                assert!(id > last);
                assert!(i64::try_from(id.0).is_ok());
                last = id;
            }
        }
    }

    #[test]
    fn an_id_says_when_it_was_made() {
        let now = UnixMillis(1_800_000_000_123);
        let id = UserIds::new().next(now);
        let millis = id.0 >> (MACHINE_BITS + SEQUENCE_BITS);
        assert_eq!(EPOCH.0 + i64::try_from(millis).unwrap(), now.0);
    }
}
