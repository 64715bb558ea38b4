//! Whose a link was and which tags it had when it was followed.

use crate::limits::{TAG_BYTES_MAX, TAGS_MAX};
use crate::owner::OwnerId;

/// The owner and the tags of a link at the moment of a click. Nothing in it is allocated: it points into a cached
/// link, or into an encoded click.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attribution<'a> {
    pub owner: OwnerId,
    pub tags: PackedTags<'a>,
}

impl Attribution<'_> {
    /// The owner, if reports on one are kept: links made without credentials have none.
    #[must_use]
    pub fn reported_owner(&self) -> Option<OwnerId> {
        (self.owner != OwnerId::ANONYMOUS).then_some(self.owner)
    }
}

/// The tags of a link in one slice: for each a byte with its length, and then its bytes. No tags take no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PackedTags<'a>(&'a [u8]);

/// The bytes are not what [`PackedTags::pack`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are no packed tags")]
pub struct InvalidTags;

impl<'a> PackedTags<'a> {
    /// No link's tags take more.
    pub const BYTES_MAX: usize = TAGS_MAX * (1 + TAG_BYTES_MAX);

    /// Appends the tags to `out`. What no link can have, a longer tag or one too many, is left out.
    pub fn pack<'t>(tags: impl IntoIterator<Item = &'t str>, out: &mut Vec<u8>) {
        let allowed = tags.into_iter().filter(|tag| tag.len() <= TAG_BYTES_MAX);
        for tag in allowed.take(TAGS_MAX) {
            out.push(u8::try_from(tag.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(tag.as_bytes());
        }
    }

    /// Checks bytes of unknown origin.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, InvalidTags> {
        let mut rest = bytes;
        let mut count = 0;
        while !rest.is_empty() {
            let (tag, after) = split(rest).ok_or(InvalidTags)?;
            if tag.len() > TAG_BYTES_MAX || std::str::from_utf8(tag).is_err() {
                return Err(InvalidTags);
            }
            rest = after;
            count += 1;
        }
        if count > TAGS_MAX {
            return Err(InvalidTags);
        }
        Ok(Self(bytes))
    }

    /// Takes bytes that [`pack`](Self::pack) wrote. Any others give some texts, or none.
    #[must_use]
    pub const fn from_packed(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (tag, after) = split(rest)?;
            rest = after;
            std::str::from_utf8(tag).ok()
        })
    }
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(length.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(tags: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        PackedTags::pack(tags.iter().copied(), &mut bytes);
        bytes
    }

    #[test]
    fn tags_come_back_in_their_order() {
        let long = "ä".repeat(TAG_BYTES_MAX / 2);
        for tags in [&[][..], &["a"], &["Red", "red", ""], &[&long, "x"]] {
            let bytes = packed(tags);
            let read = PackedTags::from_bytes(&bytes).unwrap();
            assert_eq!(read.iter().collect::<Vec<_>>(), tags);
        }
        assert_eq!(packed(&[]), b"");
        let most = vec![&*long; TAGS_MAX];
        assert_eq!(packed(&most).len(), PackedTags::BYTES_MAX);
    }

    #[test]
    fn what_no_link_has_is_left_out_and_refused() {
        let long = "x".repeat(TAG_BYTES_MAX + 1);
        assert_eq!(packed(&[&long, "a"]), b"\x01a");
        assert_eq!(
            packed(&["a"; TAGS_MAX + 1]).len(),
            packed(&["a"; TAGS_MAX]).len()
        );
        let many = b"\x01a".repeat(TAGS_MAX + 1);
        let longer = [&[TAG_BYTES_MAX as u8 + 1][..], long.as_bytes()].concat();
        for bytes in [&b"\x02a"[..], b"\x01\xff", &many, &longer] {
            assert_eq!(PackedTags::from_bytes(bytes), Err(InvalidTags));
        }
    }
}
