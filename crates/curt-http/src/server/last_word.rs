//! What a client is told before the server closes its connection.

use std::io::Write;

use curt_core::UnixMillis;

use crate::metrics::CutReason;
use crate::redirect::{Refusal, http_date};

/// Seconds after which a refused client may come again.
const RETRY_AFTER_SECONDS: u32 = 1;

/// An answer outside every route: to bytes that are no request, or to nobody in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastWord {
    Refused(Refusal),
    HeaderTimeout,
    Busy(CutReason),
}

struct Wording {
    status: &'static str,
    slug: &'static str,
    title: &'static str,
    detail: &'static str,
    reason: CutReason,
}

impl LastWord {
    pub(super) fn reason(self) -> CutReason {
        self.wording().reason
    }

    /// The whole response, a problem document like every other error.
    pub(super) fn write(self, out: &mut Vec<u8>, now: UnixMillis) {
        let wording = self.wording();
        let body = format!(
            "{{\"type\":\"/problems/{slug}\",\"title\":\"{title}\",\"status\":{status},\"detail\":\"{detail}\",\"code\":\"{slug}\"}}",
            slug = wording.slug,
            title = wording.title,
            status = &wording.status[..3],
            detail = wording.detail,
        );
        let retry = match self {
            Self::Busy(_) => format!("retry-after: {RETRY_AFTER_SECONDS}\r\n"),
            _ => String::new(),
        };
        let date = http_date(now.0.div_euclid(1_000));
        let written = write!(
            out,
            "HTTP/1.1 {}\r\ndate: {date}\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n\
             x-content-type-options: nosniff\r\n{retry}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            wording.status,
            body.len(),
        );
        debug_assert!(written.is_ok(), "a Vec takes every byte");
    }

    fn wording(self) -> Wording {
        let (status, slug, title, detail, reason) = match self {
            Self::Refused(refusal @ (Refusal::Malformed | Refusal::Host | Refusal::Framing)) => (
                "400 Bad Request",
                "malformed-request",
                "The request is malformed",
                match refusal {
                    Refusal::Host => "An HTTP/1.1 request has exactly one Host field.",
                    Refusal::Framing => {
                        "A request has one Content-Length, or Transfer-Encoding: chunked, or no body."
                    }
                    _ => "The bytes received are not an HTTP/1.1 request.",
                },
                CutReason::Malformed,
            ),
            Self::Refused(Refusal::UriTooLong) => (
                "414 URI Too Long",
                "uri-too-long",
                "The address is too long",
                "Request line and headers together have at most 16 KiB.",
                CutReason::HeadTooLarge,
            ),
            Self::Refused(Refusal::HeadTooLarge) => (
                "431 Request Header Fields Too Large",
                "head-too-large",
                "The headers are too large",
                "Request line and headers together have at most 16 KiB.",
                CutReason::HeadTooLarge,
            ),
            Self::Refused(Refusal::TooManyHeaders) => (
                "431 Request Header Fields Too Large",
                "head-too-large",
                "The headers are too large",
                "A request has at most 64 header fields.",
                CutReason::HeadTooLarge,
            ),
            Self::Refused(Refusal::Version) => (
                "505 HTTP Version Not Supported",
                "version-not-supported",
                "The HTTP version is not supported",
                "This server speaks HTTP/1.1 and HTTP/1.0.",
                CutReason::Malformed,
            ),
            Self::HeaderTimeout => (
                "408 Request Timeout",
                "header-timeout",
                "The header took too long to arrive",
                "Send the whole header within five seconds.",
                CutReason::HeaderTimeout,
            ),
            Self::Busy(reason) => (
                "503 Service Unavailable",
                "too-many-connections",
                "The server is busy",
                "There are more connections than the server may hold. Try again after the time in Retry-After.",
                reason,
            ),
        };
        Wording {
            status,
            slug,
            title,
            detail,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_last_word_is_a_complete_problem_document() {
        for word in [
            LastWord::Refused(Refusal::Malformed),
            LastWord::Refused(Refusal::Host),
            LastWord::Refused(Refusal::Framing),
            LastWord::Refused(Refusal::UriTooLong),
            LastWord::Refused(Refusal::HeadTooLarge),
            LastWord::Refused(Refusal::TooManyHeaders),
            LastWord::Refused(Refusal::Version),
            LastWord::HeaderTimeout,
            LastWord::Busy(CutReason::Limit),
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
