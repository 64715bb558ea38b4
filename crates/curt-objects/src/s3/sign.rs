//! Signatures of requests, version 4.
//!
//! The signature covers the method, the path, the query, the host, every `x-amz-` header, the range and the conditions,
//! and the hash of the body, so that nothing of a request can be changed on the way or used for another one.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Whose requests these are.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) access_key: String,
    pub(super) secret_key: String,
    pub(super) session_token: Option<String>,
}

/// A request as it will be sent. Headers have small letters in their names.
pub(super) struct Unsigned<'a> {
    pub(super) method: &'a str,
    pub(super) host: &'a str,
    /// Percent-encoded.
    pub(super) path: &'a str,
    /// Percent-encoded and sorted.
    pub(super) query: &'a str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: &'a [u8],
}

impl Unsigned<'_> {
    /// All headers that the request needs besides its host, with the signature among them. `time` is written like
    /// `20130524T000000Z`.
    pub(super) fn sign(
        self,
        credentials: &Credentials,
        region: &str,
        time: &str,
    ) -> Vec<(&'static str, String)> {
        let body_hash = hex(&Sha256::digest(self.body));
        let mut headers = self.headers;
        headers.push(("x-amz-content-sha256", body_hash.clone()));
        headers.push(("x-amz-date", time.to_owned()));
        if let Some(token) = &credentials.session_token {
            headers.push(("x-amz-security-token", token.clone()));
        }
        let mut signed: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.trim()))
            .chain([("host", self.host)])
            .collect();
        signed.sort_unstable();
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = signed
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let (method, path, query) = (self.method, self.path, self.query);
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body_hash}");
        let date = time.get(..8).unwrap_or(time);
        let scope = format!("{date}/{region}/s3/aws4_request");
        let canonical_hash = hex(&Sha256::digest(canonical));
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{canonical_hash}");
        let signature = hex(&hmac(&signing_key(credentials, date, region), &text));
        let access_key = &credentials.access_key;
        headers.push((
            "authorization",
            format!(
                "{ALGORITHM} Credential={access_key}/{scope},SignedHeaders={names},Signature={signature}"
            ),
        ));
        headers
    }
}

fn signing_key(credentials: &Credentials, date: &str, region: &str) -> Vec<u8> {
    let secret = format!("AWS4{}", credentials.secret_key);
    [date, region, "s3", "aws4_request"]
        .iter()
        .fold(secret.into_bytes(), |key, part| hmac(&key, part))
}

#[expect(clippy::expect_used, reason = "this hash takes keys of every length")]
fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Percent-encodes everything but letters, digits and `-._~`, and the slashes of a path.
pub(super) fn encode(text: &str, keeps_slashes: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            b'/' if keeps_slashes => encoded.push('/'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the service's own documentation.
    fn signature(
        method: &str,
        path: &str,
        query: &str,
        headers: &[(&'static str, &str)],
    ) -> String {
        let credentials = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let request = Unsigned {
            method,
            host: "examplebucket.s3.amazonaws.com",
            path,
            query,
            headers: headers
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            body: b"",
        };
        let headers = request.sign(&credentials, "us-east-1", "20130524T000000Z");
        let (_, authorization) = headers.last().unwrap();
        authorization.rsplit('=').next().unwrap().to_owned()
    }

    #[test]
    fn documented_requests_have_their_documented_signatures() {
        assert_eq!(
            signature("GET", "/test.txt", "", &[("range", "bytes=0-9")]),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            signature("GET", "/", "lifecycle=", &[]),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            signature("GET", "/", "max-keys=2&prefix=J", &[]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn paths_keep_their_slashes_and_values_do_not() {
        assert_eq!(encode("a b/c~d+e", true), "a%20b/c~d%2Be");
        assert_eq!(encode("a/\u{e4}", false), "a%2F%C3%A4");
    }
}
