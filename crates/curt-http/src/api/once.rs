//! `Idempotency-Key`: a create that can be repeated safely.

use curt_core::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use curt_links::OnceKey;
use http::HeaderMap;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::problem::{Problem, ProblemCode};

pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
pub(crate) const REPLAYED: &str = "idempotent-replayed";

/// The key of the request, with a fingerprint of operation and body. The body is hashed as it was understood, so that
/// white space and the order of fields make no difference.
pub(crate) fn once(
    headers: &HeaderMap,
    operation: &str,
    body: &impl Serialize,
) -> Result<Option<OnceKey>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let key = key.as_bytes();
    let sound = (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len())
        && key.iter().all(u8::is_ascii_graphic);
    if !sound {
        return Err(Problem::new(ProblemCode::MalformedRequest).detail(format!(
            "Idempotency-Key holds 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters."
        )));
    }
    Ok(Some(OnceKey {
        key: key.iter().copied().map(char::from).collect(),
        fingerprint: fingerprint(operation, body)?,
    }))
}

/// A digest of operation and body.
pub(crate) fn fingerprint(operation: &str, body: &impl Serialize) -> Result<[u8; 32], Problem> {
    let canonical = serde_json::to_vec(body).map_err(|_| Problem::new(ProblemCode::Internal))?;
    let mut hash = Sha256::new();
    hash.update(operation.as_bytes());
    hash.update([0]);
    hash.update(&canonical);
    Ok(hash.finalize().into())
}
