//! What a window may write, by the room that is left on the store's disk.
//!
//! A link that cannot be made is worse than a click that is not counted. So the last `reserve` bytes of the disk are never
//! taken; the `reserve` bytes before them are for counts alone, which make room in the spool and are small; and the spool
//! grows only above both, or what is in it could never be counted.

use curt_core::ports::ClickWindow;

/// Pages that a day of a subject may touch in the file and in its log: its row, its subject, and their indexes.
const DAY_BYTES: u64 = 12 << 10;
/// A row, its index entries on pages of their own, and the log of them.
const CLICK_BYTES: u64 = 1 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Counts and single clicks.
    All,
    /// Counts, without the single clicks.
    CountsOnly,
    /// Nothing.
    Wait,
}

/// `room`: bytes that can be written before the disk is full; `None` where that is unknown.
pub(super) fn admit(flush: &ClickWindow, room: Option<u64>, reserve: u64) -> Admission {
    let Some(room) = room else {
        return Admission::All;
    };
    // Never more than the reserve: the spool leaves twice the reserve, so that a window can always be written.
    let counts = (flush.days.len() as u64 * DAY_BYTES).min(reserve);
    let clicks = flush.clicks.len() as u64 * CLICK_BYTES;
    if room >= 2 * reserve + counts + clicks {
        Admission::All
    } else if room >= reserve + counts {
        Admission::CountsOnly
    } else {
        Admission::Wait
    }
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
            days: Vec::new(),
            clicks: Vec::new(),
        }
    }

    #[test]
    fn single_clicks_go_first_and_the_reserve_stays() {
        let reserve = 16 << 20;
        for (room, admitted) in [
            (None, Admission::All),
            (Some(64 << 20), Admission::All),
            (Some((32 << 20) - 1), Admission::CountsOnly),
            (Some(16 << 20), Admission::CountsOnly),
            (Some((16 << 20) - 1), Admission::Wait),
            (Some(0), Admission::Wait),
        ] {
            assert_eq!(admit(&flush(), room, reserve), admitted, "{room:?}");
        }
        assert_eq!(admit(&flush(), Some(0), 0), Admission::All);
    }
}
