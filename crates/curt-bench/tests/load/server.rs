//! A small blocking HTTP server that keeps every request it got and answers as the test says.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Counted from 1 in order of arrival, over all connections.
    pub(crate) number: u64,
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) headers: usize,
    pub(crate) body: String,
}

pub(crate) struct Reply {
    bytes: Vec<u8>,
    piece: usize,
    delay: Duration,
    closes: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut text = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        Self::raw(&(text + "\r\n" + body))
    }

    pub(crate) fn redirect(location: &str) -> Self {
        Self::new(302, &[("Location", location)], "moved")
    }

    pub(crate) fn raw(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_vec(),
            piece: usize::MAX,
            delay: Duration::ZERO,
            closes: false,
        }
    }

    pub(crate) fn drop_connection() -> Self {
        Self {
            closes: true,
            ..Self::raw("")
        }
    }

    /// Written in pieces of so many bytes.
    pub(crate) fn in_pieces(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn closing(mut self) -> Self {
        let text = String::from_utf8(self.bytes).unwrap();
        self.bytes = text
            .replacen("\r\n", "\r\nConnection: close\r\n", 1)
            .into_bytes();
        self.closes = true;
        self
    }
}

type Answering = dyn Fn(&Request) -> Reply + Send + Sync;

struct Shared {
    answer: Box<Answering>,
    arrived: AtomicU64,
    seen: Mutex<Vec<Request>>,
    stopping: AtomicBool,
}

pub(crate) struct TestServer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    acceptor: JoinHandle<()>,
}

impl TestServer {
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            arrived: AtomicU64::new(0),
            seen: Mutex::default(),
            stopping: AtomicBool::new(false),
        });
        let acceptor = thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        });
        Self {
            addr,
            shared,
            acceptor,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops when all clients have gone and returns what they asked.
    pub(crate) fn finish(self) -> Vec<Request> {
        self.shared.stopping.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.addr));
        self.acceptor.join().unwrap();
        std::mem::take(&mut *self.shared.seen.lock().unwrap())
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut workers = Vec::new();
    for socket in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            break;
        }
        let (socket, shared) = (socket.unwrap(), shared.clone());
        workers.push(thread::spawn(move || serve(&socket, &shared)));
    }
    for worker in workers {
        // A connection that the client cut off is the client's business; a failed assertion is ours.
        drop(worker.join().expect("the test's answer panicked"));
    }
}

fn serve(socket: &TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket);
    while let Some(request) = read_request(&mut reader, shared)? {
        let reply = (shared.answer)(&request);
        shared.seen.lock().unwrap().push(request);
        if !reply.delay.is_zero() {
            thread::sleep(reply.delay);
        }
        let mut socket = socket;
        for piece in reply.bytes.chunks(reply.piece) {
            socket.write_all(piece)?;
        }
        if reply.closes {
            break;
        }
    }
    Ok(())
}

fn read_request(reader: &mut impl BufRead, shared: &Shared) -> io::Result<Option<Request>> {
    let mut head = String::new();
    loop {
        if reader.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        if head.ends_with("\r\n\r\n") {
            break;
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request {
        number: shared.arrived.fetch_add(1, Ordering::SeqCst) + 1,
        path: head.split(' ').nth(1).unwrap().to_owned(),
        headers: head.matches("\r\n").count() - 2,
        head,
        body: String::from_utf8(body).unwrap(),
    }))
}
