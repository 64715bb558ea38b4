use super::NodeIndex;

/// Contiguous ranges of keys in byte order. Fine for random keys; sequential ones all land on one node.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// First key of each range after the first, with the range's node; the first range starts at the empty key.
    starts: Vec<(Box<[u8]>, NodeIndex)>,
    first: NodeIndex,
}

/// Why a list of ranges places nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error("the first range must start at the empty key")]
    Gap,
    #[error("ranges must be listed in rising order of their first key, each once")]
    Order,
}

impl Ranges {
    pub fn new(ranges: &[(&str, NodeIndex)]) -> Result<Self, RangeError> {
        let Some((("", first), rest)) = ranges.split_first() else {
            return Err(RangeError::Gap);
        };
        if !ranges.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(RangeError::Order);
        }
        let starts = rest
            .iter()
            .map(|(start, node)| (start.as_bytes().into(), *node))
            .collect();
        Ok(Self {
            starts,
            first: *first,
        })
    }

    #[must_use]
    pub fn node(&self, key: &[u8]) -> NodeIndex {
        let after = self.starts.partition_point(|(start, _)| &**start <= key);
        match after.checked_sub(1) {
            Some(index) => self.starts[index].1,
            None => self.first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_belongs_to_the_range_that_starts_at_or_before_it() {
        let ranges =
            Ranges::new(&[("", NodeIndex(0)), ("M", NodeIndex(1)), ("m", NodeIndex(2))]).unwrap();
        for (key, node) in [
            ("0", 0),
            ("Lz", 0),
            ("M", 1),
            ("Z", 1),
            ("lz", 1),
            ("m", 2),
            ("zz", 2),
        ] {
            assert_eq!(ranges.node(key.as_bytes()), NodeIndex(node), "{key}");
        }
    }

    #[test]
    fn gaps_and_disorder_are_refused() {
        assert_eq!(Ranges::new(&[]).err(), Some(RangeError::Gap));
        assert_eq!(
            Ranges::new(&[("a", NodeIndex(0))]).err(),
            Some(RangeError::Gap)
        );
        let twice = [("", NodeIndex(0)), ("a", NodeIndex(1)), ("a", NodeIndex(2))];
        assert_eq!(Ranges::new(&twice).err(), Some(RangeError::Order));
    }
}
