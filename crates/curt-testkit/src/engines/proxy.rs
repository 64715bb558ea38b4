//! A line between a client and an engine that tests can break.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;

/// How soon a change of the line is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How much is read at once.
const CHUNK_BYTES: usize = 16 * 1_024;

/// How a line behaves, towards connections that are there and towards new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Everything passes.
    Sound,
    /// Everything passes this much later, in both directions.
    Slow(Duration),
    /// Requests pass at once, answers this much later.
    SlowAnswers(Duration),
    /// Nothing passes, and nobody is told. What was sent arrives when the line is sound again, as it does after a
    /// network was divided.
    Held,
    /// Requests pass, answers do not: the client cannot know whether it was heard.
    Deaf,
    /// Every connection ends, also a new one.
    Cut,
}

/// Passes connections on to one address. Ends them all when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

impl Proxy {
    /// Listens on a free loopback port and passes what comes to `target`.
    pub fn to(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            line: Mutex::new(Some(Line::Sound)),
            answers_delayed: AtomicU64::new(0),
        });
        let proxy = Self {
            address,
            state: Arc::clone(&state),
        };
        std::thread::spawn(move || accept(&listener, target, &state));
        Ok(proxy)
    }

    /// What clients connect to instead of the target.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on, the line behaves like this.
    pub fn set(&self, line: Line) {
        *self.state.lock() = Some(line);
    }

    /// How many answers, or pieces of one, have had to wait so far because the line was slow, held or deaf.
    #[must_use]
    pub fn answers_delayed(&self) -> u64 {
        self.state.answers_delayed.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        *self.state.lock() = None;
        // Wakes the thread that accepts; where it fails, that thread has ended.
        TcpStream::connect(self.address).ok();
    }
}

#[derive(Debug)]
struct State {
    /// `None` when the proxy is gone.
    line: Mutex<Option<Line>>,
    answers_delayed: AtomicU64,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self) -> Option<Line> {
        *self.lock()
    }

    /// Waits while bytes in this direction may not pass. `false` when they never will.
    fn wait_to_pass(&self, direction: Direction) -> bool {
        let waits = !matches!(self.line(), None | Some(Line::Sound | Line::Cut));
        if waits && matches!(direction, Direction::Answer) {
            self.answers_delayed.fetch_add(1, Ordering::SeqCst);
        }
        loop {
            match (self.line(), direction) {
                (None | Some(Line::Cut), _) => return false,
                (Some(Line::Held), _) | (Some(Line::Deaf), Direction::Answer) => {
                    std::thread::sleep(LOOK_EVERY);
                }
                (Some(Line::Slow(delay)), _)
                | (Some(Line::SlowAnswers(delay)), Direction::Answer) => {
                    std::thread::sleep(delay);
                    return true;
                }
                (Some(Line::Sound | Line::Deaf | Line::SlowAnswers(_)), _) => return true,
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Direction {
    Request,
    Answer,
}

fn accept(listener: &TcpListener, target: SocketAddr, state: &Arc<State>) {
    while let Ok((client, _)) = listener.accept() {
        match state.line() {
            None => return,
            Some(Line::Cut) => {}
            Some(_) => {
                let state = Arc::clone(state);
                std::thread::spawn(move || connect(client, target, &state));
            }
        }
    }
}

/// A target that is away ends the connection, as it would without us.
fn connect(client: TcpStream, target: SocketAddr, state: &Arc<State>) {
    if !state.wait_to_pass(Direction::Request) {
        return;
    }
    let Ok(engine) = TcpStream::connect(target) else {
        return;
    };
    let Ok((client_again, engine_again)) = client
        .try_clone()
        .and_then(|client| Ok((client, engine.try_clone()?)))
    else {
        return;
    };
    let state_again = Arc::clone(state);
    std::thread::spawn(move || pump(engine_again, client_again, Direction::Answer, &state_again));
    pump(client, engine, Direction::Request, state);
}

/// Passes bytes on until either side or the line ends, and ends both sides then.
fn pump(from: TcpStream, to: TcpStream, direction: Direction, state: &State) {
    // The error is that the other side has gone, or the line: the same to both of them.
    pump_until_error(&from, &to, direction, state).ok();
    from.shutdown(Shutdown::Both).ok();
    to.shutdown(Shutdown::Both).ok();
}

fn pump_until_error(
    mut from: &TcpStream,
    mut to: &TcpStream,
    direction: Direction,
    state: &State,
) -> io::Result<()> {
    from.set_read_timeout(Some(LOOK_EVERY))?;
    to.set_nodelay(true)?;
    let mut chunk = [0; CHUNK_BYTES];
    while !matches!(state.line(), None | Some(Line::Cut)) {
        let length = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        if !state.wait_to_pass(direction) {
            break;
        }
        to.write_all(&chunk[..length])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Answers every byte with the next one.
    fn successor() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() {
                        stream.write_all(&[byte[0] + 1]).unwrap();
                    }
                });
            }
        });
        address
    }

    fn client(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        let timeout = Duration::from_millis(200);
        stream.set_read_timeout(Some(timeout)).unwrap();
        stream
    }

    fn answer(stream: &mut TcpStream) -> io::Result<u8> {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn ask(stream: &mut TcpStream, byte: u8) -> io::Result<u8> {
        stream.write_all(&[byte])?;
        answer(stream)
    }

    #[test]
    fn a_sound_line_passes_and_a_slow_one_passes_later() {
        let proxy = Proxy::to(successor()).unwrap();
        let mut stream = client(&proxy);
        assert_eq!(ask(&mut stream, 1).unwrap(), 2);
        proxy.set(Line::Slow(Duration::from_millis(50)));
        let start = Instant::now();
        assert_eq!(ask(&mut stream, 2).unwrap(), 3);
        assert!(start.elapsed() >= Duration::from_millis(100));
    }

    #[test]
    fn a_held_line_delivers_when_it_is_sound_again() {
        let proxy = Proxy::to(successor()).unwrap();
        let mut stream = client(&proxy);
        assert_eq!(ask(&mut stream, 1).unwrap(), 2);
        proxy.set(Line::Held);
        assert!(ask(&mut stream, 7).is_err());
        assert!(ask(&mut client(&proxy), 7).is_err());
        proxy.set(Line::Sound);
        assert_eq!(answer(&mut stream).unwrap(), 8);
    }

    #[test]
    fn a_deaf_line_lets_requests_through_and_a_cut_one_ends_everything() {
        let proxy = Proxy::to(successor()).unwrap();
        let mut stream = client(&proxy);
        proxy.set(Line::Deaf);
        assert!(ask(&mut stream, 3).is_err());
        proxy.set(Line::Cut);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        assert!(ask(&mut client(&proxy), 1).is_err());
        proxy.set(Line::Sound);
        assert_eq!(ask(&mut client(&proxy), 1).unwrap(), 2);
    }

    #[test]
    fn a_dropped_proxy_ends_its_connections() {
        let proxy = Proxy::to(successor()).unwrap();
        let mut stream = client(&proxy);
        assert_eq!(ask(&mut stream, 1).unwrap(), 2);
        drop(proxy);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
}
