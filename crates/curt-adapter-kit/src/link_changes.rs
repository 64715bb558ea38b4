//! Changes of links as text, for channels that carry text.

use std::fmt::Write as _;

use curt_core::ports::LinkChange;
use curt_core::{LinkId, Revision};

/// Between changes, and between the parts of one. Keys hold neither.
const BETWEEN: char = ' ';
const WITHIN: char = ':';

/// Writes the changes: `domain/key:generation:version` each, with spaces between them.
#[must_use]
pub fn encode(changes: &[LinkChange]) -> String {
    let mut text = String::new();
    for (place, LinkChange { id, revision }) in changes.iter().enumerate() {
        let between = if place == 0 { "" } else { " " };
        let (generation, version) = (revision.generation, revision.version);
        // Writing to a string does not fail.
        write!(text, "{between}{id}:{generation}:{version}").ok();
    }
    text
}

/// Reads what [`encode`] has written. `None`: it is something else.
#[must_use]
pub fn decode(text: &str) -> Option<Box<[LinkChange]>> {
    text.split(BETWEEN).map(decode_one).collect()
}

fn decode_one(text: &str) -> Option<LinkChange> {
    let mut parts = text.split(WITHIN);
    let id = LinkId::parse(parts.next()?)?;
    let generation = parts.next()?.parse().ok()?;
    let version = parts.next()?.parse().ok()?;
    let revision = Revision {
        generation,
        version,
    };
    parts
        .next()
        .is_none()
        .then_some(LinkChange { id, revision })
}

#[cfg(test)]
mod tests {
    use curt_core::{DomainId, Key};

    use super::*;

    #[test]
    fn changes_come_back_as_they_were() {
        let change = |key: &str, version| LinkChange {
            id: LinkId::new(DomainId(7), Key::parse(key).unwrap()),
            revision: Revision {
                generation: 3,
                version,
            },
        };
        let changes = [change("a.-_Z9", 0), change("b", u32::MAX)];
        assert_eq!(decode(&encode(&changes)).as_deref(), Some(&changes[..]));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "0/a",
            "0/a:1",
            "0/a:1:1:1",
            "0/a b:1:1",
            "0/a:1:1  0/b:1:1",
            "a:1:1",
        ] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
