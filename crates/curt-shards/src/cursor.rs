//! Where the next page of a list over many nodes begins, as text that clients carry.
//!
//! `shards-ORDER:COMMON POSITION… CHECKSUM`: the position that most nodes go on from, then those of the others by their
//! index. Positions are the nodes' own cursors, each written as its length, a dot and its text.

use std::collections::BTreeMap;

use curt_core::NodeIndex;
use curt_core::placement::hash;
use curt_core::ports::ListOrder;

/// The positions of all nodes. `None`: the node begins at its first link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListCursor {
    /// Of every node that is not among [`others`](Self::others).
    pub(crate) common: Option<Box<str>>,
    pub(crate) others: BTreeMap<NodeIndex, Option<Box<str>>>,
}

impl ListCursor {
    pub(crate) fn position(&self, node: NodeIndex) -> Option<Box<str>> {
        let own = self.others.get(&node);
        own.unwrap_or(&self.common).clone()
    }

    pub(crate) fn to_text(&self, order: ListOrder) -> Box<str> {
        let mut text = format!("{}:", name(order));
        write(&mut text, self.common.as_deref());
        for (node, position) in &self.others {
            text.push_str(&format!("{}=", node.0));
            write(&mut text, position.as_deref());
        }
        let sum = hash(text.as_bytes());
        format!("{text}{sum:016x}").into()
    }

    /// `None`: no list over many nodes in this order gave the text.
    pub(crate) fn of_text(text: &str, order: ListOrder) -> Option<Self> {
        let rest = text.strip_prefix(name(order))?.strip_prefix(':')?;
        let (common, mut rest) = read(rest)?;
        let mut others = BTreeMap::new();
        while let Some((node, position)) = rest.split_once('=') {
            let (position, behind) = read(position)?;
            others.insert(NodeIndex(node.parse().ok()?), position);
            rest = behind;
        }
        let cursor = Self { common, others };
        // One text for each cursor, to the letter.
        (*cursor.to_text(order) == *text).then_some(cursor)
    }
}

fn write(text: &mut String, position: Option<&str>) {
    match position {
        Some(position) => text.push_str(&format!("{}.{position}", position.len())),
        None => text.push('-'),
    }
}

fn read(text: &str) -> Option<(Option<Box<str>>, &str)> {
    if let Some(rest) = text.strip_prefix('-') {
        return Some((None, rest));
    }
    let (length, rest) = text.split_once('.')?;
    let (position, rest) = rest.split_at_checked(length.parse().ok()?)?;
    Some((Some(position.into()), rest))
}

fn name(order: ListOrder) -> &'static str {
    match order {
        ListOrder::NewestFirst => "shards-new",
        ListOrder::OldestFirst => "shards-old",
        ListOrder::KeyRising => "shards-az",
        ListOrder::KeyFalling => "shards-za",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_and_nothing_else_is_one() {
        let order = ListOrder::NewestFirst;
        let cursor = ListCursor {
            common: Some("postgres-new:5:0/a=b.c:12".into()),
            others: BTreeMap::from(
                [(0, None), (31, Some("7.\u{e4}".into()))]
                    .map(|(node, position)| (NodeIndex(node), position)),
            ),
        };
        for cursor in [cursor, ListCursor::default()] {
            let text = cursor.to_text(order);
            assert_eq!(ListCursor::of_text(&text, order), Some(cursor));
            assert_eq!(ListCursor::of_text(&text, ListOrder::KeyRising), None);
            for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
                assert_eq!(ListCursor::of_text(&text[..end], order), None, "{end}");
            }
        }
    }
}
