//! How records stand in a segment, and how they are found again in one that was damaged.
//!
//! A frame is a word of eight bytes, its payload, and zeros up to the next multiple of eight. It holds a record, or a
//! text that later records of the segment refer to. The word holds the payload's length (24 bits), a mark of what it is
//! (8 bits) and a checksum (32 bits), and is never zero: zero is where nothing has been written yet. The checksum also
//! covers the mark, the frame's address and the segment's salt: bytes that a visitor sends cannot pass for a frame, nor
//! can a frame in another's place.

use std::ops::Range;

/// Frames start at multiples of this.
pub(super) const ALIGNMENT: usize = 8;
/// Longest payload of a frame, in bytes.
pub(super) const PAYLOAD_BYTES_MAX: usize = 64 * 1_024;

const WORD_BYTES: usize = 8;
const LENGTH_MASK: u64 = 0xff_ffff;
const MARK_SHIFT: u32 = 24;
const MARK_MASK: u64 = 0xff << MARK_SHIFT;
const SUM_SHIFT: u32 = 32;

const _: () = assert!(PAYLOAD_BYTES_MAX as u64 <= LENGTH_MASK);

/// What a frame holds, by its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    Record = 0xc1,
    /// A text that records refer to.
    Text = 0xc2,
}

impl FrameKind {
    fn mark(self) -> u64 {
        (self as u64) << MARK_SHIFT
    }

    fn of(word: u64) -> Option<Self> {
        let kinds = [Self::Record, Self::Text];
        kinds
            .into_iter()
            .find(|kind| word & MARK_MASK == kind.mark())
    }
}

/// What a frame with this payload takes in the segment.
pub(super) const fn framed_bytes(payload: usize) -> usize {
    (WORD_BYTES + payload).next_multiple_of(ALIGNMENT)
}

/// The word before a payload that stands at `address`.
pub(super) fn word(kind: FrameKind, payload: &[u8], address: u64, salt: u64) -> u64 {
    let sum = u64::from(checksum(payload, address, salt ^ kind.mark()));
    payload.len() as u64 | kind.mark() | sum << SUM_SHIFT
}

fn checksum(payload: &[u8], address: u64, salt: u64) -> u32 {
    let place = salt ^ address;
    let start = (place >> 32) as u32 ^ (place & 0xffff_ffff) as u32;
    let mut hasher = crc32fast::Hasher::new_with_initial(start);
    hasher.update(payload);
    hasher.finalize()
}

/// What stands at the start of a window; `taken` bytes of it are done with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Frame {
        kind: FrameKind,
        payload: Range<usize>,
        taken: usize,
    },
    /// No frame: damaged, or never written.
    Damaged { taken: usize },
    /// The window is too short to tell.
    More,
}

/// Looks at the start of a window that stands at `address`. A window that ends where the content does is the `last`.
pub(super) fn scan(window: &[u8], address: u64, salt: u64, last: bool) -> Step {
    match look(window, 0, address, salt) {
        Look::Frame(kind, payload, taken) => {
            return Step::Frame {
                kind,
                payload,
                taken,
            };
        }
        Look::Cut if !last => return Step::More,
        // Its length is believed if something follows where it should: then the damage is counted record by record.
        Look::Mismatch { taken } => match plausible(window, taken) {
            Some(true) => return Step::Damaged { taken },
            None if !last => return Step::More,
            None if taken == window.len() => return Step::Damaged { taken },
            _ => {}
        },
        _ => {}
    }
    search(window, address, salt, last)
}

/// Finds the next frame after the start of the window.
fn search(window: &[u8], address: u64, salt: u64, last: bool) -> Step {
    for at in (ALIGNMENT..window.len()).step_by(ALIGNMENT) {
        match look(window, at, address, salt) {
            Look::Frame(..) => return Step::Damaged { taken: at },
            Look::Cut if !last => return Step::More,
            _ => {}
        }
    }
    match last && !window.is_empty() {
        true => Step::Damaged {
            taken: window.len(),
        },
        false => Step::More,
    }
}

enum Look {
    /// With its payload, and how many bytes it takes.
    Frame(FrameKind, Range<usize>, usize),
    Mismatch {
        taken: usize,
    },
    Nothing,
    /// What may be a frame goes on after the window.
    Cut,
}

fn look(window: &[u8], at: usize, address: u64, salt: u64) -> Look {
    let Some(found) = word_at(window, at) else {
        return Look::Cut;
    };
    let Some((kind, length)) = kind_and_length(found) else {
        return Look::Nothing;
    };
    let taken = framed_bytes(length);
    if window.len() - at < taken {
        return Look::Cut;
    }
    let payload = at + WORD_BYTES..at + WORD_BYTES + length;
    match word(kind, &window[payload.clone()], address + at as u64, salt) == found {
        true => Look::Frame(kind, payload, taken),
        false => Look::Mismatch { taken },
    }
}

fn word_at(window: &[u8], at: usize) -> Option<u64> {
    let bytes = window.get(at..)?.first_chunk::<WORD_BYTES>()?;
    Some(u64::from_le_bytes(*bytes))
}

fn kind_and_length(word: u64) -> Option<(FrameKind, usize)> {
    let length = (word & LENGTH_MASK) as usize;
    let kind = FrameKind::of(word)?;
    (length <= PAYLOAD_BYTES_MAX).then_some((kind, length))
}

/// Whether what stands at `at` looks like a frame; `None` if the window does not reach so far.
fn plausible(window: &[u8], at: usize) -> Option<bool> {
    Some(kind_and_length(word_at(window, at)?).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SALT: u64 = 0x1234_5678_9abc_def0;
    const START: u64 = 4_096;

    fn written(payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for payload in payloads {
            let address = START + bytes.len() as u64;
            bytes.extend_from_slice(&word(FrameKind::Record, payload, address, SALT).to_le_bytes());
            bytes.extend_from_slice(payload);
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        }
        bytes
    }

    /// The payloads that are found, and how many stretches of dead_letters.
    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let (mut found, mut dead_letters, mut at) = (Vec::new(), 0, 0);
        loop {
            match scan(&bytes[at..], START + at as u64, SALT, true) {
                Step::Frame { payload, taken, .. } => {
                    found.push(bytes[at..][payload].to_vec());
                    at += taken;
                }
                Step::Damaged { taken } => {
                    assert!(taken > 0, "no progress");
                    dead_letters += 1;
                    at += taken;
                }
                Step::More => return (found, dead_letters),
            }
        }
    }

    #[test]
    fn records_that_are_damaged_side_by_side_are_counted_one_by_one() {
        let payloads: Vec<Vec<u8>> = (0..10).map(|n| vec![n; 20 + n as usize]).collect();
        let mut bytes = written(&payloads);
        let start_of = |n: usize| written(&payloads[..n]).len();
        for damaged in [3, 4, 9] {
            bytes[start_of(damaged) + 10] ^= 1;
        }
        let (found, dead_letters) = read(&bytes);
        assert_eq!(dead_letters, 3);
        let whole = [&payloads[..3], &payloads[5..9]].concat();
        assert_eq!(found, whole);
    }

    #[test]
    fn a_record_is_found_again_after_a_lost_length_and_after_a_hole() {
        let payloads: Vec<Vec<u8>> = (0..5).map(|n| vec![n; 100]).collect();
        let mut bytes = written(&payloads);
        let each = framed_bytes(100);
        bytes[each..each + 8].fill(0xee);
        bytes[3 * each..4 * each].fill(0);
        let (found, dead_letters) = read(&bytes);
        assert_eq!(dead_letters, 2);
        assert_eq!(found, [0, 2, 4].map(|n| vec![n; 100]));
    }

    #[test]
    fn a_record_in_another_place_is_no_record() {
        let inner = written(&[b"stolen".to_vec()]);
        let mut bytes = written(&[b"first".to_vec(), inner]);
        bytes[framed_bytes(5)] ^= 1; // the outer record's length is lost, and the inner one comes into view
        assert_eq!(read(&bytes), (vec![b"first".to_vec()], 1));
    }

    #[test]
    fn a_window_that_is_too_short_asks_for_more() {
        let bytes = written(&[vec![7; 50], vec![8; 50]]);
        for end in 0..framed_bytes(50) {
            assert_eq!(scan(&bytes[..end], START, SALT, false), Step::More, "{end}");
        }
    }

    fn any_payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)
    }

    proptest! {
        #[test]
        fn all_come_back(payloads in any_payloads()) {
            prop_assert_eq!(read(&written(&payloads)), (payloads, 0));
        }

        /// Whatever happens to the bytes, what is found was written, and everything before the damage is found.
        #[test]
        fn damage_invents_nothing(
            payloads in any_payloads(),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        ) {
            let mut bytes = written(&payloads);
            prop_assume!(!bytes.is_empty());
            let mut first = bytes.len();
            for (place, byte) in damage {
                let place = place.index(bytes.len());
                bytes[place] = byte;
                first = first.min(place);
            }
            let (found, _) = read(&bytes);
            let untouched = (0..=payloads.len()).rev().find(|&n| written(&payloads[..n]).len() <= first);
            let untouched = untouched.unwrap_or(0);
            prop_assert_eq!(&found[..untouched], &payloads[..untouched]);
            let mut rest = payloads.iter();
            prop_assert!(found.iter().all(|record| rest.any(|wrote| wrote == record)));
        }
    }

    /// Whatever stands in a segment, it is gone through to its end, and what is taken for a record has its checksum.
    #[test]
    fn mutated_segments_are_read_to_their_end() {
        const SALT: u64 = 7;
        let mut segment = Vec::new();
        for payload in [&b"one"[..], b"", b"a longer record than the others"] {
            let address = segment.len() as u64;
            segment
                .extend_from_slice(&word(FrameKind::Record, payload, address, SALT).to_le_bytes());
            segment.extend_from_slice(payload);
            segment.resize(segment.len().next_multiple_of(ALIGNMENT), 0);
        }
        curt_testkit::fuzz::Fuzz::new("spool frames", [segment]).run(|input| {
            let (mut at, mut is_whole) = (0, true);
            while at < input.len() {
                match scan(&input[at..], at as u64, SALT, true) {
                    Step::Frame {
                        kind,
                        payload,
                        taken,
                    } => {
                        let payload = &input[at..][payload];
                        let found = word_at(input, at).unwrap();
                        assert_eq!(word(kind, payload, at as u64, SALT), found);
                        at += taken;
                    }
                    Step::Damaged { taken } => {
                        assert!(taken > 0, "it would never end");
                        (at, is_whole) = (at + taken, false);
                    }
                    Step::More => break,
                }
            }
            is_whole
        });
    }
}
