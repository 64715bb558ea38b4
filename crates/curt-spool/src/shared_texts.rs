//! Texts that many clicks have in common, such as the agent: stored once in a segment, and referred to by number.
//!
//! A text that comes for the second time gets a frame of its own with its number and its bytes; from then on records of
//! the segment have the number. The first time it stands in its record: texts that come once, which may say more of a
//! visitor than others, are wiped with it, and a flood of invented ones stores each of them once.
//!
//! ```text
//! record   which texts it has (a bit each), for each of them twice its number, or twice its length and one and then
//!          its bytes, and at the end what is the record's own
//! text     its number, and its bytes to the end
//! ```

use std::hash::BuildHasher;

use curt_core::ports::{SHARED_TEXTS, SplitRecord};
use curt_core::varint;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::frame::{FrameKind, framed_bytes};

/// Texts that a segment has numbers for, and their bytes together. What comes after that stands in its records.
const TEXTS_MAX: usize = 8_192;
const TEXT_BYTES_MAX: usize = 1 << 20;
/// A shorter text takes no more room in its record than its number would.
const NUMBERED_LENGTH_MIN: usize = 3;
/// The most bytes that a number or a length takes, and the bits that say which texts there are.
const NUMBER_BYTES: usize = 5;
/// Hashes of texts that came before, each in the one place that it may have.
const SEEN_PLACES: usize = 8_192;

const _: () = assert!(SHARED_TEXTS <= 8, "a bit for each");

/// What the record takes at most, with frames for all of its texts.
pub(super) fn framed_bytes_max(record: &SplitRecord<'_>) -> usize {
    let texts = record.shared.iter().map(|text| text.len() + NUMBER_BYTES);
    let inline: usize = texts.clone().sum();
    framed_bytes(1 + inline + record.own.len()) + texts.map(framed_bytes).sum::<usize>()
}

/// What a writer knows of the texts in its segment.
#[derive(Debug)]
pub(super) struct TextNumbers {
    hasher: DefaultHashBuilder,
    /// By number.
    texts: Vec<Box<[u8]>>,
    text_bytes: usize,
    by_hash: HashTable<u16>,
    seen: Box<[u32]>,
    /// The text or the record that is written; reused.
    payload: Vec<u8>,
}

/// How a text stands in a record.
enum TextForm {
    Number(u16),
    /// By its number, which its frame gives it first.
    NewNumber(u16),
    Inline,
}

impl TextNumbers {
    pub(super) fn new() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            texts: Vec::new(),
            text_bytes: 0,
            by_hash: HashTable::new(),
            seen: vec![0; SEEN_PLACES].into(),
            payload: Vec::new(),
        }
    }

    /// Numbers begin anew with each segment; what was frequent in the last one gets its number at once.
    pub(super) fn begin_segment(&mut self) {
        self.texts.clear();
        self.text_bytes = 0;
        self.by_hash.clear();
    }

    /// Gives the payloads that the record needs to `write`, texts before the record itself.
    pub(super) fn encode(
        &mut self,
        record: &SplitRecord<'_>,
        mut write: impl FnMut(FrameKind, &[u8]),
    ) {
        let mut payload = std::mem::take(&mut self.payload);
        let mut forms = [(); SHARED_TEXTS].map(|()| TextForm::Inline);
        for (form, text) in forms.iter_mut().zip(record.shared) {
            *form = self.form_of(text);
            if let TextForm::NewNumber(number) = *form {
                payload.clear();
                varint::push(&mut payload, number.into());
                payload.extend_from_slice(text);
                write(FrameKind::Text, &payload);
            }
        }
        payload.clear();
        payload.push(0);
        for (bit, (form, text)) in forms.into_iter().zip(record.shared).enumerate() {
            if text.is_empty() {
                continue;
            }
            payload[0] |= 1 << bit;
            match form {
                TextForm::Number(number) | TextForm::NewNumber(number) => {
                    varint::push(&mut payload, u64::from(number) << 1);
                }
                TextForm::Inline => {
                    varint::push(&mut payload, (text.len() as u64) << 1 | 1);
                    payload.extend_from_slice(text);
                }
            }
        }
        payload.extend_from_slice(record.own);
        write(FrameKind::Record, &payload);
        self.payload = payload;
    }

    fn form_of(&mut self, text: &[u8]) -> TextForm {
        if text.len() < NUMBERED_LENGTH_MIN {
            return TextForm::Inline;
        }
        let hash = self.hasher.hash_one(text);
        let same = |&number: &u16| *self.texts[usize::from(number)] == *text;
        match self.by_hash.find(hash, same) {
            Some(&number) => TextForm::Number(number),
            None => self.form_of_unnumbered(hash, text),
        }
    }

    /// A text that has no number in this segment.
    #[cold]
    fn form_of_unnumbered(&mut self, hash: u64, text: &[u8]) -> TextForm {
        let tag = (hash >> 32) as u32 | 1; // 0 stands for nothing
        let place = (hash & 0xffff_ffff) as usize % SEEN_PLACES;
        let seen = &mut self.seen[place];
        if std::mem::replace(seen, tag) != tag {
            return TextForm::Inline;
        }
        let is_full = self.text_bytes + text.len() > TEXT_BYTES_MAX;
        let number = u16::try_from(self.texts.len()).ok();
        match number.filter(|number| !is_full && usize::from(*number) < TEXTS_MAX) {
            Some(number) => {
                self.texts.push(text.into());
                self.text_bytes += text.len();
                let (texts, hasher) = (&self.texts, &self.hasher);
                self.by_hash.insert_unique(hash, number, |&number| {
                    hasher.hash_one(&*texts[usize::from(number)])
                });
                TextForm::NewNumber(number)
            }
            None => TextForm::Inline,
        }
    }
}

/// The texts of one segment, for its reader.
#[derive(Debug, Default)]
pub(super) struct TextTable {
    /// By number.
    texts: Vec<Option<Box<[u8]>>>,
}

/// The record refers to a text that is damaged, or is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MissingText;

impl TextTable {
    /// Takes the payload of a text's frame. One that no writer wrote is passed over.
    pub(super) fn add(&mut self, mut payload: &[u8]) {
        let number = varint::take(&mut payload).and_then(|number| usize::try_from(number).ok());
        let Some(number) = number.filter(|number| *number < TEXTS_MAX) else {
            return;
        };
        if self.texts.len() <= number {
            self.texts.resize(number + 1, None);
        }
        self.texts[number] = Some(payload.into());
    }

    /// The record of a frame's payload, with its texts.
    pub(super) fn resolve<'a>(&'a self, payload: &'a [u8]) -> Result<SplitRecord<'a>, MissingText> {
        let (&bits, mut rest) = payload.split_first().ok_or(MissingText)?;
        let mut shared: [&[u8]; SHARED_TEXTS] = [&[]; SHARED_TEXTS];
        for (bit, text) in shared.iter_mut().enumerate() {
            if bits & 1 << bit != 0 {
                *text = self.text(&mut rest).ok_or(MissingText)?;
            }
        }
        Ok(SplitRecord { own: rest, shared })
    }

    fn text<'a>(&'a self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let form = varint::take(rest)?;
        let number = usize::try_from(form >> 1).ok()?;
        if form & 1 == 0 {
            return self.texts.get(number)?.as_deref();
        }
        let (text, after) = rest.split_at_checked(number)?;
        *rest = after;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the records are read back as, and how many texts got frames.
    fn round_trip(numbers: &mut TextNumbers, records: &[SplitRecord<'_>]) -> (Vec<Vec<u8>>, usize) {
        let (mut table, mut read, mut texts) = (TextTable::default(), Vec::new(), 0);
        numbers.begin_segment();
        for record in records {
            let mut taken = 0;
            numbers.encode(record, |kind, payload| {
                taken += framed_bytes(payload.len());
                match kind {
                    FrameKind::Text => {
                        texts += 1;
                        table.add(payload);
                    }
                    FrameKind::Record => {
                        let mut joined = Vec::new();
                        table.resolve(payload).unwrap().join(&mut joined);
                        read.push(joined);
                    }
                }
            });
            assert!(taken <= framed_bytes_max(record));
        }
        (read, texts)
    }

    fn joined(records: &[SplitRecord<'_>]) -> Vec<Vec<u8>> {
        let join = |record: &SplitRecord<'_>| {
            let mut bytes = Vec::new();
            record.join(&mut bytes);
            bytes
        };
        records.iter().map(join).collect()
    }

    #[test]
    fn a_text_gets_a_number_the_second_time_and_at_once_in_the_next_segment() {
        let record = SplitRecord {
            own: b"own",
            shared: [b"agent", b"", b"de", b"owner", b""],
        };
        let mut numbers = TextNumbers::new();
        for (count, texts) in [(1, 0), (1, 2), (5, 2)] {
            let records = vec![record; count];
            assert_eq!(
                round_trip(&mut numbers, &records),
                (joined(&records), texts)
            );
        }
    }

    #[test]
    fn texts_that_do_not_repeat_and_too_many_texts_stand_in_their_records() {
        let agents: Vec<String> = (0..3 * TEXTS_MAX).map(|n| format!("agent {n}")).collect();
        let once: Vec<SplitRecord<'_>> = agents
            .iter()
            .map(|agent| SplitRecord {
                own: b"own",
                shared: [agent.as_bytes(), b"", b"", b"", b""],
            })
            .collect();
        let mut numbers = TextNumbers::new();
        assert_eq!(round_trip(&mut numbers, &once), (joined(&once), 0));
        let twice: Vec<SplitRecord<'_>> = once.iter().flat_map(|one| [*one, *one]).collect();
        let (read, texts) = round_trip(&mut numbers, &twice);
        assert_eq!(read, joined(&twice));
        assert_eq!(texts, TEXTS_MAX);
    }

    #[test]
    fn a_record_whose_text_is_missing_is_none() {
        let table = TextTable::default();
        for payload in [&b""[..], b"\x01", b"\x01\x02own", b"\x01\x07ab"] {
            assert_eq!(table.resolve(payload), Err(MissingText), "{payload:?}");
        }
    }

    fn any_text() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[ab]{0,4}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..300),
        ]
    }

    proptest! {
        #[test]
        fn every_record_comes_back(
            records in proptest::collection::vec((any_text(), proptest::array::uniform5(any_text())), 0..60),
        ) {
            let records: Vec<SplitRecord<'_>> = records
                .iter()
                .map(|(own, shared)| SplitRecord { own, shared: shared.each_ref().map(Vec::as_slice) })
                .collect();
            let (read, _) = round_trip(&mut TextNumbers::new(), &records);
            prop_assert_eq!(read, joined(&records));
        }
    }

    #[test]
    fn mutated_payloads_are_resolved_or_refused() {
        let samples = [&b"\x03\x00\x0aown"[..], b"\x01\x07abcown", b"\x00own"];
        curt_testkit::fuzz::Fuzz::new("spool texts", samples.map(<[u8]>::to_vec)).run(|input| {
            let mut table = TextTable::default();
            table.add(b"\x00agent");
            table.add(b"\x05referrer");
            table.add(input);
            table
                .resolve(input)
                .is_ok_and(|record| record.own.len() < input.len())
        });
    }
}
