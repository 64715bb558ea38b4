//! What a window may write, by the space that is left on the store's disk.
//!
//! A link that cannot be made is worse than a click that is not counted. So the last `reserve` bytes of the disk are never
//! taken; the `reserve` bytes before them are for counts alone, which free space in the spool and are small; and the spool
//! grows only above both, or what is in it could never be counted.

use curt_core::ports::ClickWindow;

use super::ConsumerSettings;

/// A day of a subject and each of its counts, in the file and in the log, and once more when runs are merged.
const DAY_BYTES_MAX: u64 = 1 << 8;
const ROLLUP_BYTES_MAX: u64 = 1 << 7;
/// Its part of a block, in the file and in the log, and once more when small blocks are put together.
const CLICK_BYTES_MAX: u64 = 1 << 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteScope {
    /// Counts and single clicks.
    CountsAndClicks,
    /// Counts, without the single clicks.
    CountsOnly,
    /// Nothing.
    Nothing,
}

/// `free_bytes`: bytes that can be written before the disk is full; `None` where that is unknown.
pub(super) fn choose_scope(
    flush: &ClickWindow,
    free_bytes: Option<u64>,
    reserve: u64,
) -> WriteScope {
    let Some(free_bytes) = free_bytes else {
        return WriteScope::CountsAndClicks;
    };
    // Never more than the reserve: the spool leaves twice the reserve, so that a window can always be written.
    let rollups = flush.days.iter().map(|day| day.rollups.len() as u64);
    let counts = flush.days.len() as u64 * DAY_BYTES_MAX + rollups.sum::<u64>() * ROLLUP_BYTES_MAX;
    let counts = counts.min(reserve);
    let clicks = flush.clicks() as u64 * CLICK_BYTES_MAX;
    if free_bytes >= 2 * reserve + counts + clicks {
        WriteScope::CountsAndClicks
    } else if free_bytes >= reserve + counts {
        WriteScope::CountsOnly
    } else {
        WriteScope::Nothing
    }
}

/// Whether a window may grow as large as the settings allow and still be written without touching what is left to others.
pub(super) fn has_room_for_windows(free_bytes: Option<u64>, settings: &ConsumerSettings) -> bool {
    let needed = settings
        .disk_reserve
        .saturating_mul(2)
        .saturating_add(settings.window_bytes_max);
    settings.disk_reserve == 0 || free_bytes.is_none_or(|free_bytes| free_bytes >= needed)
}

#[cfg(test)]
mod tests {
    use curt_core::ports::{StreamId, StreamPartition};

    use super::*;

    fn flush() -> ClickWindow {
        ClickWindow {
            partition: StreamPartition {
                stream: StreamId(1),
                number: 0,
            },
            from: 0,
            to: 1,
            days: Vec::new().into(),
            blocks: Vec::new(),
        }
    }

    #[test]
    fn single_clicks_go_first_and_the_reserve_stays() {
        let reserve = 16 << 20;
        for (free_bytes, admitted) in [
            (None, WriteScope::CountsAndClicks),
            (Some(64 << 20), WriteScope::CountsAndClicks),
            (Some((32 << 20) - 1), WriteScope::CountsOnly),
            (Some(16 << 20), WriteScope::CountsOnly),
            (Some((16 << 20) - 1), WriteScope::Nothing),
            (Some(0), WriteScope::Nothing),
        ] {
            assert_eq!(
                choose_scope(&flush(), free_bytes, reserve),
                admitted,
                "{free_bytes:?}"
            );
        }
        assert_eq!(
            choose_scope(&flush(), Some(0), 0),
            WriteScope::CountsAndClicks
        );
    }

    #[test]
    fn windows_are_small_unless_the_largest_one_has_room() {
        let settings = ConsumerSettings {
            disk_reserve: 16 << 20,
            window_bytes_max: 64 << 20,
            ..ConsumerSettings::default()
        };
        assert!(has_room_for_windows(None, &settings));
        assert!(has_room_for_windows(Some(96 << 20), &settings));
        assert!(!has_room_for_windows(Some((96 << 20) - 1), &settings));
        let careless = ConsumerSettings {
            disk_reserve: 0,
            ..settings
        };
        assert!(has_room_for_windows(Some(0), &careless));
    }
}
