//! Mutated request heads against a reference that knows RFC 9112 and nothing else.

use curt_testkit::fuzz::Fuzz;

use super::super::{BodyFraming, Framed, ParsedRequest, frame_request, read_request};

const SAMPLES: [&str; 6] = [
    "GET /abc HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "HEAD /abc?q=1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET http://a.example:80/abc HTTP/1.1\r\nHost: a.example:80\r\nUser-Agent: x\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
    "POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "POST /api HTTP/1.1\r\nHost: [::1]:8080\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /abc HTTP/1.1\nHost: a\n\nGET /next HTTP/1.1\r\nHost: b\r\n\r\n",
];
const WORDS: [&str; 16] = [
    "GET ",
    "POST ",
    " HTTP/1.1\r\n",
    " HTTP/1.0\r\n",
    "Host: b\r\n",
    "\r\n\r\n",
    "\n",
    "Content-Length: 5\r\n",
    "Content-Length: +5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: x, chunked\r\n",
    " : ",
    "\r\n folded",
    "Expect: 100-continue\r\n",
    "Upgrade: h2c\r\n",
    "\0",
];

#[test]
fn mutated_heads_that_are_accepted_keep_rfc_9112() {
    Fuzz::new("request head", SAMPLES)
        .with_words(WORDS)
        .run(|input| {
            let framed = frame_request(input);
            let Framed::Complete(frame) = framed else {
                assert!(
                    !matches!(
                        read_request(input),
                        ParsedRequest::Plain(_) | ParsedRequest::Other
                    ),
                    "two verdicts"
                );
                return false;
            };
            let head = &input[..frame.bytes];
            let body = judge(head);
            assert_eq!(body, Ok(frame.body), "the body's end");
            // What follows a head, and how it arrived, changes nothing.
            assert_eq!(frame_request(head), Framed::Complete(frame.clone()));
            for end in [0, 1, head.len() / 2, head.len() - 1] {
                let is_complete = matches!(frame_request(&head[..end]), Framed::Complete(_));
                assert!(!is_complete, "a head within a head: {end}");
            }
            match read_request(input) {
                ParsedRequest::Plain(plain) => {
                    assert_eq!(plain.bytes, frame.bytes);
                    assert_eq!(frame.body, BodyFraming::None, "a redirect with a body");
                    let target = &head[frame.target];
                    assert!(
                        target
                            .windows(plain.key.len())
                            .any(|part| part == plain.key.as_bytes())
                    );
                }
                ParsedRequest::Other => {}
                verdict => panic!("framed, and yet {verdict:?}"),
            }
            true
        });
}

/// Reads a head line by line, and says how its body ends.
fn judge(head: &[u8]) -> Result<BodyFraming, &'static str> {
    // Empty lines before a request are to be ignored (RFC 9112, section 2.2).
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = lines
        .find(|line| !line.is_empty())
        .ok_or("no request line")?;
    let mut parts = first.split(|byte| *byte == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    if !method.is_some_and(is_token)
        || !target.is_some_and(|target| target.iter().all(|byte| *byte > b' ' && *byte != 0x7f))
    {
        return Err("request line");
    }
    let is_old = match version {
        Some(b"HTTP/1.1") => false,
        Some(b"HTTP/1.0") => true,
        _ => return Err("version"),
    };
    let (mut hosts, mut lengths, mut codings) = (0, Vec::new(), Vec::new());
    for line in lines.take_while(|line| !line.is_empty()) {
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .ok_or("no colon")?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if !is_token(name)
            || value
                .iter()
                .any(|byte| matches!(byte, 0..=8 | 10..=31 | 127))
        {
            return Err("field");
        }
        let value = value.trim_ascii();
        match name.to_ascii_lowercase().as_slice() {
            b"host" => hosts += 1,
            b"content-length" => lengths.push(value.to_vec()),
            b"transfer-encoding" => codings.push(value.to_ascii_lowercase()),
            _ => {}
        }
    }
    if hosts > 1 || (hosts == 0 && !is_old) {
        return Err("host");
    }
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(BodyFraming::None),
        ([first, rest @ ..], []) if rest.iter().all(|length| length == first) => {
            let is_number = !first.is_empty() && first.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(first)
                .ok()
                .and_then(|text| text.parse().ok());
            number
                .filter(|_| is_number)
                .map(BodyFraming::Length)
                .ok_or("length")
        }
        ([], [coding]) if coding == b"chunked" && !is_old => Ok(BodyFraming::Chunked),
        _ => Err("framing"),
    }
}

fn is_token(text: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_sign)
}
