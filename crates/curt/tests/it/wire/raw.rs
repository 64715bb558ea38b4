//! Bytes out, bytes in.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const WAIT_MAX: Duration = Duration::from_secs(60);

/// One response, as far apart as the test needs it.
pub(super) struct RawAnswer {
    pub(super) status: u16,
    /// Status line first, without line ends.
    pub(super) head: Vec<String>,
    pub(super) body: Vec<u8>,
}

impl RawAnswer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().skip(1).find_map(|line| {
            let (field, value) = line.split_once(": ")?;
            field.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl fmt::Display for RawAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        write!(f, "{}\n{body:.400}", self.head.join("\n"))
    }
}

/// Sends `bytes` and returns everything that comes back until the server closes. The request must ask for that.
pub(super) fn exchange(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap_or_else(|error| {
        let sent = String::from_utf8_lossy(bytes);
        let received = String::from_utf8_lossy(&answer);
        panic!("{error} after {received:?}, for {sent:.300?}")
    });
    answer
}

/// Like [`exchange`], for one request.
pub(super) fn ask(addr: SocketAddr, bytes: &[u8]) -> RawAnswer {
    let answer = exchange(addr, bytes);
    let sent = String::from_utf8_lossy(bytes);
    let mut answers = split(&answer, &[sent.starts_with("HEAD ")]);
    assert_eq!(answers.len(), 1, "{:.300}", sent);
    answers.remove(0)
}

/// Takes a stream of responses apart. `heads` tells which of the requests were `HEAD`; the rest were not.
pub(super) fn split(mut bytes: &[u8], heads: &[bool]) -> Vec<RawAnswer> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let end = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let head: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
        bytes = &bytes[end + 4..];
        let status = head[0].get(9..12).and_then(|code| code.parse().ok());
        let mut answer = RawAnswer {
            status: status.unwrap_or_else(|| panic!("{}", head[0])),
            head,
            body: Vec::new(),
        };
        let is_head = heads.get(answers.len()).copied().unwrap_or(false);
        if !is_head && answer.header("transfer-encoding") == Some("chunked") {
            (answer.body, bytes) = unchunked(bytes);
            answers.push(answer);
            continue;
        }
        let length: usize = match answer.header("content-length") {
            Some(_) if is_head => 0,
            Some(length) => length.parse().unwrap(),
            None => 0,
        };
        let (body, rest) = bytes
            .split_at_checked(length)
            .unwrap_or_else(|| panic!("the body is cut: {answer}"));
        answer.body = body.to_vec();
        bytes = rest;
        answers.push(answer);
    }
    answers
}

/// A body that came in chunks, and what follows it.
fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = std::str::from_utf8(&bytes[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        let (chunk, rest) = bytes[end + 2..].split_at(length);
        body.extend_from_slice(chunk);
        bytes = rest.strip_prefix(b"\r\n").expect("the end of a chunk");
        if length == 0 {
            return (body, bytes);
        }
    }
}

/// A whole request that closes the connection after its answer.
pub(super) fn request(method: &str, path: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = match body.is_empty() {
        true => String::new(),
        false => format!("Content-Length: {}\r\n", body.len()),
    };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}{length}\r\n{body}"
    )
    .into_bytes()
}
