use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::Request;
use super::response::{Framing, Response, malformed};

/// Longest wait for one answer, unless a test says otherwise.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
/// Largest head and body that are read.
const HEAD_BYTES_MAX: usize = 64 * 1_024;
const BODY_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// One socket to a server.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    host: String,
    timeout: Duration,
    /// What was read beyond the answers so far.
    unread: Vec<u8>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Self::over(
            TcpStream::connect_timeout(&address, TIMEOUT_DEFAULT)?,
            address,
        )
    }

    /// Opens a connection from another address of this machine, such as 127.0.0.9.
    pub fn open_from(source: IpAddr, address: SocketAddr) -> io::Result<Self> {
        // The standard library binds no socket before it connects.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stream = runtime.block_on(async {
            let socket = match address {
                SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4()?,
                SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6()?,
            };
            socket.bind(SocketAddr::new(source, 0))?;
            let connecting = tokio::time::timeout(TIMEOUT_DEFAULT, socket.connect(address));
            connecting.await.map_err(|_| timed_out())??.into_std()
        })?;
        stream.set_nonblocking(false)?;
        Self::over(stream, address)
    }

    fn over(stream: TcpStream, address: SocketAddr) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(TIMEOUT_DEFAULT))?;
        Ok(Self {
            stream,
            host: address.to_string(),
            timeout: TIMEOUT_DEFAULT,
            unread: Vec::new(),
        })
    }

    /// Waits at most this long for each answer from now on.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a request and reads its answer.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        self.write_raw(&request.encode(&self.host))?;
        self.read_response(request.method())
    }

    /// Sends bytes as they are, in one write where the system takes them.
    pub fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Says that nothing more will be sent; answers can still be read.
    pub fn finish_writing(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Reads the next answer. `method` says what it answers: one to `HEAD` has no body. Interim answers are skipped.
    pub fn read_response(&mut self, method: &str) -> io::Result<Response> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let head = self.read_head(deadline)?;
            let mut response = Response::parse_head(&head)?;
            if matches!(response.status, 100 | 102..=199) {
                continue;
            }
            response.body = match response.framing(method)? {
                Framing::Length(length) => self.read_length(length, deadline)?,
                Framing::Chunked => self.read_chunks(deadline)?,
                Framing::UntilClose => self.read_rest(deadline)?,
            };
            return Ok(response);
        }
    }

    /// Everything until the server closes the connection.
    pub fn read_to_close(&mut self) -> io::Result<Vec<u8>> {
        self.read_rest(Instant::now() + self.timeout)
    }

    /// How long it takes until the server closes the connection, without anything more being sent.
    pub fn time_to_close(&mut self) -> io::Result<Duration> {
        let start = Instant::now();
        match self.read_to_close() {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => Err(error),
            _ => Ok(start.elapsed()),
        }
    }

    /// Whether the server has closed the connection, as far as is known here without waiting.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let look = || {
            self.stream.set_nonblocking(true)?;
            let seen = self.stream.peek(&mut [0]);
            self.stream.set_nonblocking(false)?;
            seen
        };
        match look() {
            Ok(seen) => seen == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    /// Reads more into `unread`; `false` when the server has closed the connection.
    fn fill(&mut self, deadline: Instant) -> io::Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(timed_out());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut buffer = [0; 16 * 1_024];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.unread.extend_from_slice(&buffer[..count]);
                Ok(count > 0)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(timed_out()),
            Err(error) => Err(error),
        }
    }

    /// Reads more, which must come.
    fn need(&mut self, deadline: Instant, what: &str) -> io::Result<()> {
        if self.fill(deadline)? {
            return Ok(());
        }
        let what = format!("the connection was closed before {what}");
        Err(io::Error::new(ErrorKind::UnexpectedEof, what))
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        self.unread.drain(..count).collect()
    }

    /// Reads up to and including the mark.
    fn read_through(&mut self, mark: &[u8], what: &str, deadline: Instant) -> io::Result<Vec<u8>> {
        loop {
            let found = self
                .unread
                .windows(mark.len())
                .position(|seen| seen == mark);
            if let Some(place) = found {
                return Ok(self.take(place + mark.len()));
            }
            if self.unread.len() > HEAD_BYTES_MAX {
                return Err(malformed(format!("no end of {what}")));
            }
            self.need(deadline, &format!("the end of {what}"))?;
        }
    }

    fn read_head(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        self.read_through(b"\r\n\r\n", "the head", deadline)
    }

    fn read_length(&mut self, length: u64, deadline: Instant) -> io::Result<Vec<u8>> {
        if length > BODY_BYTES_MAX {
            return Err(malformed(format!("a body of {length} bytes")));
        }
        let length = usize::try_from(length).map_err(io::Error::other)?;
        while self.unread.len() < length {
            self.need(deadline, "the end of the body")?;
        }
        Ok(self.take(length))
    }

    fn read_chunks(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.read_through(b"\r\n", "a chunk's size", deadline)?;
            let length = chunk_length(&line)?;
            if length == 0 {
                break;
            }
            body.extend(self.read_length(length, deadline)?);
            if self.read_length(2, deadline)? != *b"\r\n" {
                return Err(malformed("a chunk that is longer than it says"));
            }
            if body.len() as u64 > BODY_BYTES_MAX {
                return Err(malformed("an endless body"));
            }
        }
        while self.read_through(b"\r\n", "the trailers", deadline)? != *b"\r\n" {}
        Ok(body)
    }

    fn read_rest(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        while self.fill(deadline)? {
            if self.unread.len() as u64 > BODY_BYTES_MAX {
                return Err(malformed("an endless body"));
            }
        }
        Ok(std::mem::take(&mut self.unread))
    }
}

fn timed_out() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the server did not answer in time")
}

fn chunk_length(line: &[u8]) -> io::Result<u64> {
    let text = std::str::from_utf8(line).unwrap_or_default().trim_end();
    let digits = text.split(';').next().unwrap_or_default();
    let hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let length = u64::from_str_radix(digits, 16).ok().filter(|_| hex);
    length.ok_or_else(|| malformed(format!("the chunk size {text:?}")))
}
