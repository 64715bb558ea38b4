//! The steps of a stop, in their order, as every thread sees them.
//!
//! A client that holds a connection open may send its next request in the moment in which the server closes it, and
//! would get no answer. So a stop first ends connections by their answers (`connection: close`), while new ones are
//! still let in; a balancer sees "not ready" meanwhile. Then nobody is let in, and only connections that stay silent
//! are closed without an answer.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

#[cfg(target_os = "linux")]
use socket2::SockFilter;
use socket2::SockRef;
use tokio_util::sync::CancellationToken;

use super::limit::ConnectionLimit;

/// How long a connection may stay silent after listeners have closed. A client that sends requests one after the other
/// has sent the next one by then, and its answer closed the connection.
const SILENCE: Duration = Duration::from_millis(250);
const SILENCE_STEP: Duration = Duration::from_millis(5);
/// How long the kernel may take to finish handshakes that had begun when the listener stopped taking new ones.
const HANDSHAKES: Duration = Duration::from_millis(100);

/// Each token is cancelled after the one before it.
#[derive(Clone, Debug)]
pub(crate) struct StopSteps {
    /// Answers close their connection.
    pub(crate) answers_close: CancellationToken,
    /// Listeners close.
    pub(crate) listeners_close: CancellationToken,
    /// Connections that owe no answer close.
    pub(crate) idle_closes: CancellationToken,
}

impl StopSteps {
    /// Steps that begin with `stop`; [`run`](Self::run) leads through the others.
    pub(crate) fn new(stop: &CancellationToken) -> Self {
        Self {
            answers_close: stop.child_token(),
            listeners_close: CancellationToken::new(),
            idle_closes: CancellationToken::new(),
        }
    }

    /// Steps that all happen with `stop`.
    pub(crate) fn at_once(stop: &CancellationToken) -> Self {
        Self {
            answers_close: stop.clone(),
            listeners_close: stop.clone(),
            idle_closes: stop.clone(),
        }
    }

    /// Waits for the stop and leads through its steps. When it returns, only requests under way are left.
    pub(crate) async fn run(&self, drain_delay: Duration, limit: &Arc<ConnectionLimit>) {
        self.answers_close.cancelled().await;
        tokio::time::sleep(drain_delay).await;
        self.listeners_close.cancel();
        let all_closed = async {
            while limit.open() > 0 {
                tokio::time::sleep(SILENCE_STEP).await;
            }
        };
        let silent = tokio::time::timeout(SILENCE, all_closed).await.is_err();
        tracing::debug!(silent, "listeners closed");
        self.idle_closes.cancel();
    }
}

/// Lets no new client begin a handshake, and waits for those that have begun one: closing the listener would reset them.
pub(crate) async fn end_handshakes(listener: &TcpListener) {
    if let Err(error) = refuse_handshakes(&SockRef::from(listener)) {
        tracing::debug!(%error, "backlog could not be closed");
    }
    tokio::time::sleep(HANDSHAKES).await;
}

/// Drops packets that begin a handshake. A backlog of zero would not do: the kernel lets one client in beyond it.
#[cfg(target_os = "linux")]
fn refuse_handshakes(listener: &SockRef<'_>) -> io::Result<()> {
    // Classic BPF, on the TCP header: load the byte of flags; with SYN go to the last line, else keep the whole packet.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    listener.attach_filter(&[
        SockFilter::new(0x30, 0, 0, FLAGS),
        SockFilter::new(0x45, 1, 0, SYN),
        SockFilter::new(0x06, 0, 0, u32::MAX),
        SockFilter::new(0x06, 0, 0, 0),
    ])
}

#[cfg(not(target_os = "linux"))]
fn refuse_handshakes(listener: &SockRef<'_>) -> io::Result<()> {
    listener.listen(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn no_client_is_let_in_after_handshakes_have_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut before = TcpStream::connect(address).unwrap();
        end_handshakes(&listener).await;
        let (mut accepted, _) = listener.accept().unwrap();
        // Those who were let in are served.
        before.write_all(b"x").unwrap();
        let mut byte = [0];
        io::Read::read_exact(&mut accepted, &mut byte).unwrap();
        let after = TcpStream::connect_timeout(&address, Duration::from_millis(200));
        assert!(after.is_err(), "{after:?}");
    }
}
