//! What goes over the wire, on raw sockets: every endpoint with every method and every kind of credentials, bad input,
//! and the redirect byte by byte. Never an answer that blames the server.

mod credentials;
mod input;
mod malformed;
mod raw;
mod redirect;

use serde_json::Value;

use crate::metrics::Metrics;
use raw::RawAnswer;

/// Checks that an error is the problem document that the API promises, and returns its code.
fn problem(answer: &RawAnswer, context: &str) -> String {
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{context}: {answer}"
    );
    let body: Value = serde_json::from_slice(&answer.body)
        .unwrap_or_else(|error| panic!("{context}: {error}: {answer}"));
    let code = body["code"].as_str().unwrap_or_default().to_owned();
    assert_eq!(body["status"], answer.status, "{context}: {answer}");
    assert_eq!(body["type"], format!("/problems/{code}"), "{context}");
    for text in ["title", "detail"] {
        let said = body[text].as_str().unwrap_or_default();
        assert!(!said.is_empty(), "{context}: no {text}: {answer}");
    }
    assert_eq!(
        answer.status == 401,
        answer.header("www-authenticate").is_some(),
        "{context}: {answer}"
    );
    code
}

/// The server's own count of answers that blame it.
fn no_server_errors(metrics: &Metrics) {
    let blamed = metrics.matching(|name| {
        name.starts_with("curt_http_requests_total") && name.contains("status=\"5")
    });
    assert!(blamed.is_empty(), "{blamed:?}");
}
