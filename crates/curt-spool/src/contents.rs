//! How far segments are written, as one moment saw it.

use std::sync::Arc;

use super::segment::Segment;

/// A segment, and the address after the last record that counts as written.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) segment: Arc<Segment>,
    pub(super) end: u64,
}

/// Looks at the segments, which come oldest first, by a tail that was read before.
///
/// The newest is looked at first: the writer closes one after the other, so whoever sees the end of a segment also sees
/// the ends of all before it. The other way round, the writer could close two between two looks, and what it wrote last
/// into the first of them would be passed over for good.
pub(super) fn of<'a>(
    segments: impl DoubleEndedIterator<Item = &'a Arc<Segment>>,
    tail: u64,
) -> Vec<Content> {
    let newest_first = segments.rev().map(|segment| Content {
        segment: Arc::clone(segment),
        end: end_of(segment, tail),
    });
    let mut contents: Vec<Content> = newest_first.collect();
    contents.reverse();
    contents
}

/// Address after the last record of a segment, closed or not.
pub(super) fn end_of(segment: &Segment, tail: u64) -> u64 {
    match segment.end() {
        0 => tail.max(segment.data_start()),
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 4_096;

    #[test]
    fn a_segment_that_ends_late_is_not_passed_over_for_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let made = |first| Arc::new(Segment::create(folder.path(), 0, first, BYTES).unwrap());
        let segments = [made(BYTES), made(2 * BYTES)];
        let (tail, first_end, second_end) = (BYTES + 100, BYTES + 200, 2 * BYTES + 300);
        let mut looks = 0;
        let between_looks = |_: &&Arc<Segment>| {
            looks += 1;
            if looks == 2 {
                segments[0].close(first_end);
                segments[1].close(second_end);
            }
        };
        let seen = of(segments.iter().inspect(between_looks), tail);
        let ends: Vec<u64> = seen.iter().map(|content| content.end).collect();
        assert_eq!(ends, [first_end, segments[1].data_start()]);
    }
}
