//! What a client is told before the server closes its connection.

use std::io::Write;

use curt_core::UnixMillis;

use crate::metrics::CutReason;
use crate::problem::{PROBLEM_JSON, Problem, ProblemCode};
use crate::redirect::{Refusal, http_date};

/// Seconds after which a refused client may come again.
const RETRY_AFTER_SECONDS: u32 = 1;

/// An answer outside every route: to bytes that are no request, or to nobody in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalResponse {
    Refused(Refusal),
    HeaderTimeout,
    /// A proxy did not say whose requests follow.
    NoProxyHeader,
    Busy(CutReason),
}

impl FinalResponse {
    pub(crate) fn reason(self) -> CutReason {
        self.wording().2
    }

    /// The whole response, a problem document like every other error.
    pub(crate) fn write(self, out: &mut Vec<u8>, now: UnixMillis) {
        let (code, detail, _) = self.wording();
        let body = Problem::new(code).detail(detail).body();
        let body = serde_json::to_string(&body).unwrap_or_default();
        let retry = match self {
            Self::Busy(_) => format!("retry-after: {RETRY_AFTER_SECONDS}\r\n"),
            _ => String::new(),
        };
        let written = write!(
            out,
            "HTTP/1.1 {}\r\ndate: {}\r\ncontent-type: {PROBLEM_JSON}\r\ncache-control: no-store\r\n\
             x-content-type-options: nosniff\r\n{retry}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            code.status(),
            http_date(now.0.div_euclid(1_000)),
            body.len(),
        );
        debug_assert!(written.is_ok(), "a Vec takes every byte");
    }

    fn wording(self) -> (ProblemCode, &'static str, CutReason) {
        match self {
            Self::Refused(Refusal::Malformed) => (
                ProblemCode::MalformedRequest,
                "The bytes received are not an HTTP/1.1 request.",
                CutReason::Malformed,
            ),
            Self::Refused(Refusal::Host) => (
                ProblemCode::MalformedRequest,
                "An HTTP/1.1 request has exactly one Host field, with a name or an address and perhaps a port.",
                CutReason::Malformed,
            ),
            Self::Refused(Refusal::Framing) => (
                ProblemCode::MalformedRequest,
                "A request has one Content-Length, or Transfer-Encoding: chunked, or no body.",
                CutReason::Malformed,
            ),
            Self::Refused(Refusal::UriTooLong) => (
                ProblemCode::UriTooLong,
                "Request line and headers together have at most 16 KiB.",
                CutReason::HeadTooLarge,
            ),
            Self::Refused(Refusal::HeadTooLarge) => (
                ProblemCode::HeadTooLarge,
                "Request line and headers together have at most 16 KiB.",
                CutReason::HeadTooLarge,
            ),
            Self::Refused(Refusal::TooManyHeaders) => (
                ProblemCode::HeadTooLarge,
                "A request has at most 64 header fields.",
                CutReason::HeadTooLarge,
            ),
            Self::Refused(Refusal::Version) => (
                ProblemCode::VersionNotSupported,
                "This server speaks HTTP/1.1 and HTTP/1.0.",
                CutReason::Malformed,
            ),
            Self::HeaderTimeout => (
                ProblemCode::HeaderTimeout,
                "The header was still incomplete when its time was over.",
                CutReason::HeaderTimeout,
            ),
            Self::NoProxyHeader => (
                ProblemCode::MalformedRequest,
                "Connections from your address begin with a header of the PROXY protocol, version 1 or 2.",
                CutReason::ProxyHeader,
            ),
            Self::Busy(CutReason::AddressLimit) => (
                ProblemCode::TooManyConnections,
                "Your address has as many connections open as it may. Close some, or try again after the time in \
                 Retry-After.",
                CutReason::AddressLimit,
            ),
            Self::Busy(reason) => (
                ProblemCode::TooManyConnections,
                "There are more connections than the server may hold. Try again after the time in Retry-After.",
                reason,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_last_word_is_a_complete_problem_document() {
        for word in [
            FinalResponse::Refused(Refusal::Malformed),
            FinalResponse::Refused(Refusal::Host),
            FinalResponse::Refused(Refusal::Framing),
            FinalResponse::Refused(Refusal::UriTooLong),
            FinalResponse::Refused(Refusal::HeadTooLarge),
            FinalResponse::Refused(Refusal::TooManyHeaders),
            FinalResponse::Refused(Refusal::Version),
            FinalResponse::HeaderTimeout,
            FinalResponse::NoProxyHeader,
            FinalResponse::Busy(CutReason::Limit),
            FinalResponse::Busy(CutReason::AddressLimit),
        ] {
            let mut out = Vec::new();
            word.write(&mut out, UnixMillis(0));
            let text = String::from_utf8(out).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())));
            assert!(head.ends_with("\r\nconnection: close"));
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            let status = problem["status"].as_u64().unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")));
            assert_eq!(
                problem["type"],
                format!("/problems/{}", problem["code"].as_str().unwrap())
            );
        }
    }
}
