//! `Idempotency-Key`: a create that can be repeated safely.

use std::io;
use std::net::IpAddr;

use curt_accounts::Principal;
use curt_core::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use curt_links::IdempotencyKey;
use data_encoding::HEXLOWER;
use http::{HeaderMap, HeaderName};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::problem::{Problem, ProblemCode};

pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The key of the request, with a fingerprint of operation and body. The body is hashed as it was understood, so that
/// white space and the order of fields make no difference.
pub(crate) fn read_idempotency_key(
    headers: &HeaderMap,
    principal: Option<&Principal>,
    address: IpAddr,
    operation: &str,
    body: &impl Serialize,
) -> Result<Option<IdempotencyKey>, Problem> {
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
    let key = key.iter().copied().map(char::from).collect();
    Ok(Some(IdempotencyKey {
        key: bind_to_client(key, principal, address),
        fingerprint: fingerprint(operation, body)?,
    }))
}

/// The key as it is recorded. An account has keys of its own; clients without one are told apart by their address, so
/// that none meets another's links or takes keys away from it. A digest, because addresses are not kept.
pub(crate) fn bind_to_client(
    key: String,
    principal: Option<&Principal>,
    address: IpAddr,
) -> String {
    if principal.is_some() {
        return key;
    }
    let mut hash = Sha256::new();
    hash.update(address.to_canonical().to_string().as_bytes());
    hash.update([0]);
    hash.update(key.as_bytes());
    format!("anonymous-{}", HEXLOWER.encode(&hash.finalize()))
}

/// A digest of operation and body.
pub(crate) fn fingerprint(operation: &str, body: &impl Serialize) -> Result<[u8; 32], Problem> {
    let mut hash = HashWriter(Sha256::new());
    hash.0.update(operation.as_bytes());
    hash.0.update([0]);
    // Not by way of a text: a bulk body is large, and is in memory already.
    serde_json::to_writer(&mut hash, body).map_err(|_| Problem::new(ProblemCode::Internal))?;
    Ok(hash.0.finalize().into())
}

/// Hashes what is written.
struct HashWriter(Sha256);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use curt_testkit::fuzz::Fuzz;
    use http::HeaderValue;

    use super::*;

    fn read(value: &[u8], host: u8) -> Result<IdempotencyKey, Problem> {
        let value = HeaderValue::from_bytes(value)
            .map_err(|_| Problem::new(ProblemCode::MalformedRequest))?;
        let headers = HeaderMap::from_iter([(HeaderName::from_static(IDEMPOTENCY_KEY), value)]);
        let address = Ipv4Addr::new(192, 0, 2, host).into();
        let read = read_idempotency_key(&headers, None, address, "create", &"body")?;
        Ok(read.expect("the header is there"))
    }

    #[test]
    fn mutated_headers_are_refused_or_recorded_as_digests() {
        let longest = "k".repeat(IDEMPOTENCY_KEY_BYTES_MAX);
        Fuzz::new(
            "Idempotency-Key",
            ["a", "8e03978e-40d5-43dd-bc93", &longest],
        )
        .with_words([" ", "\t", "\u{e4}", "\"a\"", "anonymous-", &longest])
        .run(|value| {
            let is_sound = (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&value.len())
                && value.iter().all(|byte| (b'!'..=b'~').contains(byte));
            let Ok(read_key) = read(value, 1) else {
                assert!(!is_sound, "refused");
                return false;
            };
            assert!(is_sound, "taken");
            assert!(read_key.key.len() <= IDEMPOTENCY_KEY_BYTES_MAX);
            assert_eq!(read(value, 1).unwrap().key, read_key.key, "no retry");
            assert_ne!(read(value, 2).unwrap().key, read_key.key, "shared");
            true
        });
    }
}
