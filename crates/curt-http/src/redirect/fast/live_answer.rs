//! The answer to a request for a live link.

use curt_core::{ServedLink, UnixMillis};

use crate::redirect::{Persistence, PlainGet, ResponseHeads, finish, write_location};

/// Writes the answer to one request for a live link.
#[inline]
pub(super) fn write_redirect(
    output: &mut Vec<u8>,
    heads: &ResponseHeads,
    get: &PlainGet<'_>,
    hit: &ServedLink,
    closes: bool,
    now: UnixMillis,
) {
    heads.start(output, hit, now);
    let query = get.query.filter(|_| hit.forward_query());
    write_location(output, hit.location_bytes(), query);
    let persistence = if closes {
        Persistence::Close
    } else {
        get.persistence
    };
    finish(output, persistence);
}
