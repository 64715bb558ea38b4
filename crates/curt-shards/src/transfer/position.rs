//! Where an export over several nodes goes on.

use std::fmt::Write as _;

/// Where an export of one node goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodePosition {
    At {
        /// Where the part begins that is being taken from.
        part: Option<Box<str>>,
        /// The name of the last item of it that was taken.
        taken: Option<Box<str>>,
    },
    Done,
}

impl NodePosition {
    pub(super) const FIRST: Self = Self::At {
        part: None,
        taken: None,
    };

    fn write(&self, text: &mut String) {
        match self {
            Self::Done => text.push('.'),
            Self::At { part, taken } => {
                text.push('@');
                write_name(text, part.as_deref());
                write_name(text, taken.as_deref());
            }
        }
    }

    fn read(text: &str) -> Option<(Self, &str)> {
        match text.split_at_checked(1)? {
            (".", rest) => Some((Self::Done, rest)),
            ("@", rest) => {
                let (part, rest) = read_name(rest)?;
                let (taken, rest) = read_name(rest)?;
                Some((Self::At { part, taken }, rest))
            }
            _ => None,
        }
    }
}

/// With its length: a name may hold anything.
fn write_name(text: &mut String, name: Option<&str>) {
    let _infallible = match name {
        Some(name) => write!(text, "{}:{name}", name.len()),
        None => write!(text, "-"),
    };
}

fn read_name(text: &str) -> Option<(Option<Box<str>>, &str)> {
    if let Some(rest) = text.strip_prefix('-') {
        return Some((None, rest));
    }
    let (length, rest) = text.split_once(':')?;
    let (name, rest) = rest.split_at_checked(length.parse().ok()?)?;
    Some((Some(name.into()), rest))
}

/// The version of the map stands before the positions.
pub(super) fn to_text(version: u64, positions: &[NodePosition]) -> Box<str> {
    let mut text = format!("shards{version};");
    for position in positions {
        position.write(&mut text);
    }
    text.into()
}

/// `None`: it is not a position over so many nodes.
pub(super) fn of_text(text: &str, nodes: usize) -> Option<(u64, Vec<NodePosition>)> {
    let (version, mut rest) = text.strip_prefix("shards")?.split_once(';')?;
    let mut positions = Vec::with_capacity(nodes);
    while !rest.is_empty() {
        let (position, behind) = NodePosition::read(rest)?;
        positions.push(position);
        rest = behind;
    }
    let is_whole = positions.len() == nodes;
    Some((version.parse().ok()?, positions)).filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_were_written() {
        let at = |part: Option<&str>, taken: Option<&str>| NodePosition::At {
            part: part.map(Into::into),
            taken: taken.map(Into::into),
        };
        let positions = [
            NodePosition::FIRST,
            at(None, Some("0/a")),
            NodePosition::Done,
            at(Some("r1:a\n@.-b 🦀"), Some("request 1:7:x")),
            at(Some(""), None),
        ];
        let text = to_text(7, &positions);
        assert_eq!(of_text(&text, 5), Some((7, positions.to_vec())));
        assert_eq!(of_text(&text, 4), None);
        for wrong in [
            "",
            "shards",
            "shards7",
            "shards7;x",
            "shards7;@3:ab",
            "l1:0/a",
        ] {
            assert_eq!(of_text(wrong, 1), None, "{wrong}");
        }
    }
}
