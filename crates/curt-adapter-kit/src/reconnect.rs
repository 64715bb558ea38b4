//! A connection that is made anew in the background after it failed.
//!
//! Callers never wait on a lock while somebody connects: they see the state as it is. Right after a loss they wait for
//! the one attempt that is under way; once that has failed, calls fail at once with its reason, and the attempts go on
//! behind them. So an engine that is away costs one connect timeout, not one per call.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Pauses between attempts: short at first, because most outages are restarts and fail-overs.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(500);

type Connect<C> = dyn Fn() -> Pin<Box<dyn Future<Output = PortResult<C>> + Send>> + Send + Sync;

pub struct Reconnecting<C> {
    connect: Arc<Connect<C>>,
    state: Arc<watch::Sender<State<C>>>,
    /// The attempts under way, ended with the adapter.
    attempts: Mutex<Option<AbortHandle>>,
    /// Where connections live: they die with their runtime, and a caller's may end earlier than the process, as that of a
    /// redirect worker does. `None`: on that of the caller.
    runtime: Option<Handle>,
}

/// A connection, and which one of all that were made.
#[derive(Clone, Debug)]
pub struct Current<C> {
    pub connection: C,
    number: u64,
}

enum State<C> {
    /// Nobody has asked yet, or the attempts were cut off with their runtime.
    Unasked {
        made: u64,
    },
    /// The first attempt since the loss is under way.
    Opening {
        made: u64,
    },
    Open(Current<C>),
    /// At least one attempt failed, and others follow.
    Down {
        made: u64,
        reason: Reason,
    },
}

/// Why the latest attempt failed.
#[derive(Clone)]
struct Reason {
    kind: ErrorKind,
    backend: &'static str,
    detail: String,
}

impl<C: Clone + Send + Sync + 'static> Reconnecting<C> {
    /// `connect` makes one attempt and must come to an end by itself.
    pub fn new<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = PortResult<C>> + Send + 'static,
    {
        Self {
            connect: Arc::new(move || Box::pin(connect())),
            state: Arc::new(watch::Sender::new(State::Unasked { made: 0 })),
            attempts: Mutex::new(None),
            runtime: Handle::try_current().ok(),
        }
    }

    /// The connection for `op`. Nothing was sent when this fails.
    pub async fn get(&self, op: &'static str) -> PortResult<Current<C>> {
        self.begin(|state| matches!(state, State::Unasked { .. }));
        let mut seen = self.state.subscribe();
        // The sender lives in `self`, so that waiting ends with a state.
        let Ok(state) = seen
            .wait_for(|state| matches!(state, State::Open(_) | State::Down { .. }))
            .await
        else {
            return Err(PortError::new(
                ErrorKind::Bug,
                "reconnect",
                op,
                "the state is gone",
            ));
        };
        match &*state {
            State::Down { reason, .. } => {
                let detail = reason.detail.clone();
                Err(PortError::new(reason.kind, reason.backend, op, detail))
            }
            State::Open(current) => Ok(current.clone()),
            State::Unasked { .. } | State::Opening { .. } => Err(PortError::new(
                ErrorKind::Bug,
                "reconnect",
                op,
                "the wait ended early",
            )),
        }
    }

    /// Tells that `current` is not to be used any more. The first to tell starts the attempts.
    pub fn lost(&self, current: &Current<C>) {
        self.begin(|state| matches!(state, State::Open(open) if open.number == current.number));
    }

    fn begin(&self, is_due: impl FnOnce(&State<C>) -> bool) {
        let begun = self.state.send_if_modified(|state| {
            let due = is_due(state);
            if due {
                *state = State::Opening { made: state.made() };
            }
            due
        });
        if begun {
            let attempts = Attempts {
                connect: Arc::clone(&self.connect),
                state: Arc::clone(&self.state),
                is_done: false,
            };
            #[expect(clippy::disallowed_methods, reason = "aborted with the connection")]
            let task = match &self.runtime {
                Some(runtime) => runtime.spawn(attempts.run()),
                None => tokio::spawn(attempts.run()),
            };
            let mut running = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
            *running = Some(task.abort_handle());
        }
    }
}

impl<C> Drop for Reconnecting<C> {
    fn drop(&mut self) {
        let running = self
            .attempts
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = running {
            task.abort();
        }
    }
}

impl<C> State<C> {
    /// How many connections were made so far.
    fn made(&self) -> u64 {
        match self {
            Self::Unasked { made } | Self::Opening { made } | Self::Down { made, .. } => *made,
            Self::Open(current) => current.number,
        }
    }
}

/// The one task that connects.
struct Attempts<C> {
    connect: Arc<Connect<C>>,
    state: Arc<watch::Sender<State<C>>>,
    is_done: bool,
}

impl<C> Attempts<C> {
    async fn run(mut self) {
        let mut pause = PAUSE_FIRST;
        loop {
            let outcome = (self.connect)().await;
            let made = self.state.borrow().made();
            match outcome {
                Ok(connection) => {
                    let number = made + 1;
                    self.is_done = true;
                    self.state
                        .send_replace(State::Open(Current { connection, number }));
                    return;
                }
                Err(error) => {
                    let reason = Reason {
                        kind: error.kind,
                        backend: error.backend,
                        detail: error.detail,
                    };
                    self.state.send_replace(State::Down { made, reason });
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

impl<C> Drop for Attempts<C> {
    /// Cut off by a panic or with its runtime: whoever asks next starts over.
    fn drop(&mut self) {
        if !self.is_done {
            self.state
                .send_modify(|state| *state = State::Unasked { made: state.made() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Fails as often as told, then gives the number of the attempt.
    fn failing_first(times: u32, attempts: &Arc<AtomicU32>) -> Reconnecting<u32> {
        let attempts = Arc::clone(attempts);
        Reconnecting::new(move || {
            let attempt = attempts.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                if attempt < times {
                    let refused = format!("refused {attempt}");
                    return Err(PortError::new(
                        ErrorKind::Unavailable,
                        "test",
                        "connect",
                        refused,
                    ));
                }
                Ok(attempt)
            }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn callers_share_one_attempt() {
        let attempts = Arc::default();
        let link = Arc::new(failing_first(0, &attempts));
        let callers: Vec<_> = (0..64)
            .map(|_| {
                let link = Arc::clone(&link);
                tokio::spawn(async move { link.get("ask").await.map(|current| current.connection) })
            })
            .collect();
        for caller in callers {
            assert_eq!(caller.await.unwrap().unwrap(), 0);
        }
        let lost = link.get("ask").await.unwrap();
        for _ in 0..64 {
            link.lost(&lost);
        }
        assert_eq!(link.get("ask").await.unwrap().connection, 1);
        link.lost(&lost);
        assert_eq!(link.get("ask").await.unwrap().connection, 1, "old news");
        assert_eq!(attempts.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn while_it_is_down_calls_fail_at_once_and_attempts_go_on() {
        let attempts = Arc::default();
        let link = failing_first(3, &attempts);
        let refused = link.get("ask").await.unwrap_err();
        assert_eq!((refused.kind, refused.op), (ErrorKind::Unavailable, "ask"));
        let before = tokio::time::Instant::now();
        assert_eq!(link.get("ask").await.unwrap_err().detail, "refused 0");
        assert_eq!(before.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(link.get("ask").await.unwrap().connection, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_with_their_owner() {
        let attempts = Arc::default();
        let link = failing_first(u32::MAX, &attempts);
        assert!(link.get("ask").await.is_err());
        drop(link);
        let made = attempts.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(attempts.load(Ordering::SeqCst), made);
    }

    #[test]
    fn attempts_cut_off_with_their_runtime_start_over() {
        let attempts = Arc::default();
        let link = failing_first(1, &attempts);
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
        };
        assert!(runtime().block_on(link.get("ask")).is_err());
        let current = runtime().block_on(link.get("ask")).unwrap();
        assert_eq!(current.connection, 1);
    }
}
