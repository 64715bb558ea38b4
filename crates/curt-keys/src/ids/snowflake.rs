use std::sync::Arc;

use curt_core::clock::{Clock, UnixMillis};
use curt_core::ports::Cursor;
use curt_core::{ErrorKind, Key, PortResult};
use tokio::sync::Mutex;

use super::{CLAIM_TRIES_MAX, IdCodec, contended, failed};
use crate::settings::SnowflakeLayout;

/// 2026-01-01T00:00:00Z, where the seconds of an id start.
const EPOCH: UnixMillis = UnixMillis(1_767_225_600_000);

/// Ids of time, data centre, machine and sequence.
///
/// Time is logical and never goes back: it follows the clock while the clock runs ahead, and counts on by itself when
/// the clock steps back or a second has no sequence numbers left. Seconds are reserved in the cursor before any of them
/// is used, so that neither a restart nor a second generator with the same numbers repeats an id.
pub(crate) struct Snowflake {
    cursor: Arc<dyn Cursor>,
    clock: Arc<dyn Clock>,
    codec: IdCodec,
    layout: SnowflakeLayout,
    register: String,
    reserved: Mutex<Window>,
}

/// Seconds that are reserved for this generator, and the next id within them.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    second: u64,
    sequence: u64,
    /// The first second that is not reserved.
    end: u64,
}

impl Window {
    fn next(&mut self, now: u64, layout: &SnowflakeLayout) -> Option<u64> {
        if now > self.second {
            self.second = now;
            self.sequence = 0;
        }
        if self.second >= self.end {
            return None;
        }
        let generator = (layout.datacentre << layout.machine_bits) | layout.machine;
        let generators = layout.datacentre_bits + layout.machine_bits;
        let id =
            (((self.second << generators) | generator) << layout.sequence_bits) | self.sequence;
        self.sequence += 1;
        if self.sequence >> layout.sequence_bits != 0 {
            self.second += 1;
            self.sequence = 0;
        }
        Some(id)
    }
}

impl Snowflake {
    pub(crate) fn new(
        cursor: Arc<dyn Cursor>,
        clock: Arc<dyn Clock>,
        codec: IdCodec,
        layout: SnowflakeLayout,
    ) -> Self {
        let register = format!("snowflake/{}/{}", layout.datacentre, layout.machine);
        Self {
            cursor,
            clock,
            codec,
            layout,
            register,
            reserved: Mutex::default(),
        }
    }

    /// Up to `count` ids. Fewer when a reservation fails on the way, and an error when there is none at all.
    async fn ids(&self, count: usize) -> PortResult<Vec<u64>> {
        let mut window = self.reserved.lock().await;
        let now = self.clock.now().since(EPOCH).as_secs();
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count {
            if let Some(id) = window.next(now, &self.layout) {
                ids.push(id);
                continue;
            }
            match self.reserve(now).await {
                Ok(reserved) => *window = reserved,
                Err(_) if !ids.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(ids)
    }

    async fn reserve(&self, now: u64) -> PortResult<Window> {
        for _ in 0..CLAIM_TRIES_MAX {
            let seen = self.cursor.get(&self.register).await?;
            let second = now.max(seen);
            let end = (second + self.layout.reserve_seconds).min(1 << self.layout.time_bits);
            if second >= end {
                return Err(failed(
                    ErrorKind::Invalid,
                    "the time bits are used up: choose another layout or key strategy",
                ));
            }
            if self.cursor.advance(&self.register, seen, end).await? {
                return Ok(Window {
                    second,
                    sequence: 0,
                    end,
                });
            }
        }
        Err(contended())
    }

    pub(super) async fn draw(&self, room: usize) -> PortResult<Vec<Key>> {
        // The seed first: ids must not be reserved and then not be written.
        self.codec.seed.get().await?;
        let ids = self.ids(room).await?;
        self.codec.keys(ids.into_iter()).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use curt_core::Alphabet;
    use curt_core::clock::ManualClock;
    use curt_memory::MemoryCursor;

    use super::*;

    struct Bench {
        cursor: Arc<MemoryCursor>,
        clock: Arc<ManualClock>,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                cursor: Arc::default(),
                clock: Arc::new(ManualClock::at(EPOCH.plus(Duration::from_secs(1_000)))),
            }
        }

        fn generator(&self, layout: SnowflakeLayout) -> Snowflake {
            let codec = IdCodec::new(Alphabet::Base64Url, Default::default(), self.cursor.clone());
            Snowflake::new(self.cursor.clone(), self.clock.clone(), codec, layout)
        }
    }

    /// Small enough that sequences overflow at once.
    fn layout() -> SnowflakeLayout {
        SnowflakeLayout {
            time_bits: 40,
            sequence_bits: 4,
            ..SnowflakeLayout::default()
        }
    }

    #[test]
    fn the_epoch_is_the_first_second_of_2026() {
        let days = 56 * 365 + 14;
        assert_eq!(EPOCH.0, days * 86_400_000);
    }

    #[tokio::test]
    async fn an_id_holds_time_data_centre_machine_and_sequence() {
        let bench = Bench::new();
        let layout = SnowflakeLayout {
            datacentre: 1,
            machine: 5,
            ..SnowflakeLayout::default()
        };
        let ids = bench.generator(layout).ids(2).await.unwrap();
        assert_eq!(ids[1] & 0x3fff, 1);
        assert_eq!((ids[1] >> 14) & 0b111, 5);
        assert_eq!((ids[1] >> 17) & 1, 1);
        assert_eq!(ids[1] >> 18, 1_000);
    }

    #[tokio::test]
    async fn a_clock_that_steps_back_and_a_full_second_are_survived() {
        let bench = Bench::new();
        let generator = bench.generator(layout());
        let mut ids = generator.ids(100).await.unwrap();
        bench.clock.set(UnixMillis(0));
        ids.extend(generator.ids(100).await.unwrap());
        bench.clock.set(EPOCH.plus(Duration::from_secs(5_000)));
        ids.extend(generator.ids(100).await.unwrap());
        assert!(ids.is_sorted_by(|a, b| a < b), "ids rise: {ids:?}");
    }

    #[tokio::test]
    async fn a_crash_and_a_twin_with_the_same_numbers_never_repeat_an_id() {
        let bench = Bench::new();
        let mut seen = HashSet::new();
        for _ in 0..20 {
            let (one, two) = (bench.generator(layout()), bench.generator(layout()));
            for _ in 0..3 {
                for generator in [&one, &two] {
                    for id in generator.ids(37).await.unwrap() {
                        assert!(seen.insert(id), "{id} came twice");
                    }
                }
            }
            // Dropped without a word, as by a crash; and the clock is set back at the restart.
            bench
                .clock
                .set(bench.clock.now().minus(Duration::from_secs(3)));
        }
    }

    #[tokio::test]
    async fn the_end_of_time_is_an_error_and_not_a_repetition() {
        let bench = Bench::new();
        let layout = SnowflakeLayout {
            time_bits: 10,
            sequence_bits: 34,
            ..SnowflakeLayout::default()
        };
        bench.clock.set(EPOCH.plus(Duration::from_secs(1_024)));
        let error = bench.generator(layout).ids(1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
    }
}
