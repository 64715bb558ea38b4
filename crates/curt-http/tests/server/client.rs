//! A client that sends exactly the bytes it is told to.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// No test waits longer than this for a byte.
const WAIT_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case, in the order received; `date` is left out, for it changes.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(field, _)| field == name);
        let first = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} was sent twice: {self:?}");
        first
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
        Self {
            stream,
            received: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self
    }

    /// `GET path` on HTTP/1.1 with nothing but a host.
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        self.response()
    }

    pub(crate) fn response(&mut self) -> Response {
        self.response_to("GET")
    }

    /// The next response, whose length depends on the method that it answers.
    pub(crate) fn response_to(&mut self, method: &str) -> Response {
        let head_end = loop {
            let end = self
                .received
                .windows(4)
                .position(|four| four == b"\r\n\r\n");
            match end {
                Some(end) => break end,
                None => assert!(
                    self.receive(),
                    "closed before an answer: {:?}",
                    String::from_utf8_lossy(&self.received)
                ),
            }
        };
        let head = String::from_utf8(self.received[..head_end].to_vec()).unwrap();
        self.received.drain(..head_end + 4);
        let mut lines = head.split("\r\n");
        let status_line = lines.next().unwrap();
        assert!(status_line.starts_with("HTTP/1."), "{status_line}");
        let status = status_line[9..12].parse().unwrap();
        let mut fields: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let dates = fields.iter().filter(|(name, _)| name == "date").count();
        assert_eq!(dates, 1, "one date in {head}");
        fields.retain(|(name, _)| name != "date");
        let mut response = Response {
            status,
            fields,
            body: Vec::new(),
        };
        let length = response
            .field("content-length")
            .map(|text| text.parse::<usize>().unwrap());
        if method != "HEAD" {
            let length = length.unwrap();
            while self.received.len() < length {
                assert!(self.receive(), "closed within a body");
            }
            response.body = self.received.drain(..length).collect();
        }
        response
    }

    /// Whether the server closes without sending anything more; how long it took.
    pub(crate) fn closed(&mut self) -> Duration {
        let start = Instant::now();
        let more = self.receive();
        assert!(
            !more && self.received.is_empty(),
            "expected the end, got {:?}",
            String::from_utf8_lossy(&self.received)
        );
        start.elapsed()
    }

    /// Whether the server has closed, as far as can be known without waiting.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let mut buffer = [0; 4_096];
        let closed = match self.stream.read(&mut buffer) {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        self.stream.set_nonblocking(false).unwrap();
        closed
    }

    /// Reads once; false at the end of the stream.
    fn receive(&mut self) -> bool {
        let mut buffer = [0; 65_536];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(bytes) => {
                self.received.extend_from_slice(&buffer[..bytes]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no answer: {error}"),
        }
    }
}
