//! Where a record stands among those of its producer. It travels in a header of the Kafka record, as text:
//! `producer.sequence.previous`, each in hexadecimal digits, without `previous` in the first record of a run.

use std::fmt::Write;

use curt_core::ports::ProducerId;

/// The header's name.
pub(super) const HEADER: &str = "curt-position";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) producer: ProducerId,
    pub(super) sequence: u64,
    /// The producer's sequence number before this one in the same partition. `None`: whatever was before is durable.
    pub(super) previous: Option<u64>,
}

impl Position {
    pub(super) fn encode(&self, out: &mut String) {
        out.clear();
        // Writing to a string cannot fail.
        let _written = write!(out, "{:x}.{:x}", self.producer.0, self.sequence);
        if let Some(previous) = self.previous {
            let _written = write!(out, ".{previous:x}");
        }
    }

    /// `None`: the record was not written by a sink of ours.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.split(|byte| *byte == b'.').map(hexadecimal);
        let (producer, sequence) = (parts.next()??, parts.next()??);
        let previous = match parts.next() {
            None => None,
            Some(previous) => Some(previous?),
        };
        parts.next().is_none().then_some(Self {
            producer: ProducerId(producer),
            sequence,
            previous,
        })
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        let digit = char::from(*digit).to_digit(16)?;
        number = number << 4 | u64::from(digit);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let mut text = String::new();
        for previous in [None, Some(0), Some(u64::MAX)] {
            for number in [0, 1, u64::MAX] {
                let position = Position {
                    producer: ProducerId(number),
                    sequence: number,
                    previous,
                };
                position.encode(&mut text);
                assert_eq!(Position::decode(text.as_bytes()), Some(position), "{text}");
            }
        }
        for wrong in [
            "",
            "1",
            "1.",
            ".1",
            "1.2.3.4",
            "1.g",
            "1.2.",
            "11111111111111111.1",
        ] {
            assert_eq!(Position::decode(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
