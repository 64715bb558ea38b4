//! Flushes that reports ask for.
//!
//! Windows last minutes, and a report wants the clicks of a moment ago. It does not add them to what is stored, but has the
//! consumers of its process write them first: so nothing can be counted twice, and no total goes down.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// At most one flush in this time for all who ask. Less than the second after which feeds ask again.
const EVERY_MIN: Duration = Duration::from_millis(900);
/// How long those who ask wait for it: with a slow store they read what is stored.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How long to wait before consumers that could not write everything are asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// A consumer that has ended has served everything.
const ENDED: u64 = u64::MAX;

/// Asks the consumers of a process to write what they have aggregated. Cheap to clone; clones ask the same consumers.
#[derive(Clone, Debug, Default)]
pub struct FlushRequests(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    newest: Mutex<Option<Request>>,
    /// The number of the newest request.
    asked: watch::Sender<u64>,
    /// By consumer.
    served: watch::Sender<Vec<Served>>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    at: Instant,
}

/// The requests that a consumer has served, by their numbers.
#[derive(Clone, Copy, Debug)]
struct Served {
    /// The last one.
    last: u64,
    /// The last one after which nothing was left in the stream that was there when it came.
    whole: u64,
}

impl FlushRequests {
    /// What was read this long ago is written by the next flush at the latest.
    pub const EVERY_MAX: Duration = Duration::from_secs(1);

    /// Returns when the consumers have written what they had read, or tried to; at once if they did so less than a second
    /// ago, and after a second in any case.
    pub async fn flush(&self) {
        let mut served = self.0.served.subscribe();
        let Request { number, at } = self.join_or_begin(&served);
        let all_served = served.wait_for(|served| is_served(served, number));
        // The deadline is that of the flush and not of the caller: nobody waits long for a store that does not answer.
        let _in_time = timeout_at(at + WAIT_MAX, all_served).await;
    }

    /// Returns whether the consumers have written everything that was in the stream when this was called, which may take as
    /// long as `wait_max`.
    pub async fn flush_all(&self, wait_max: Duration) -> bool {
        let deadline = Instant::now() + wait_max;
        loop {
            let mut served = self.0.served.subscribe();
            let Request { number, .. } = self.begin();
            let all_served = served.wait_for(|served| is_served(served, number));
            match timeout_at(deadline, all_served).await {
                Ok(Ok(served)) if is_wholly_served(&served, number) => return true,
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return false,
            }
            if Instant::now() + ASK_AGAIN >= deadline {
                return false;
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Asks in any case.
    fn begin(&self) -> Request {
        let mut newest = self.0.newest.lock().unwrap_or_else(PoisonError::into_inner);
        self.begin_next(&mut newest)
    }

    fn begin_next(&self, newest: &mut Option<Request>) -> Request {
        let begun = Request {
            number: newest.map_or(1, |last| last.number + 1),
            at: Instant::now(),
        };
        *newest = Some(begun);
        self.0.asked.send_replace(begun.number);
        begun
    }

    fn join_or_begin(&self, served: &watch::Receiver<Vec<Served>>) -> Request {
        let mut newest = self.0.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match *newest {
            Some(last)
                if last.at.elapsed() < EVERY_MIN || !is_served(&served.borrow(), last.number) =>
            {
                last
            }
            _ => self.begin_next(&mut newest),
        }
    }

    /// Makes the caller a consumer that is waited for.
    pub(super) fn serve(&self) -> FlushServer {
        let mut consumer = 0;
        self.0.served.send_modify(|served| {
            let last = *self.0.asked.borrow();
            let new = Served { last, whole: 0 };
            // In the place of one that has ended: partitions come and go.
            match served.iter().position(|served| served.last == ENDED) {
                Some(place) => {
                    consumer = place;
                    served[place] = new;
                }
                None => {
                    consumer = served.len();
                    served.push(new);
                }
            }
        });
        FlushServer {
            asked: self.0.asked.subscribe(),
            requests: self.clone(),
            consumer,
        }
    }

    fn note_served(&self, consumer: usize, number: u64, is_whole: bool) {
        self.0.served.send_modify(|served| {
            let served = &mut served[consumer];
            served.last = number;
            if is_whole {
                served.whole = number;
            }
        });
    }

    fn last_served(&self, consumer: usize) -> u64 {
        self.0.served.borrow()[consumer].last
    }
}

fn is_served(served: &[Served], number: u64) -> bool {
    served.iter().all(|served| served.last >= number)
}

/// Before the consumers have begun, nobody knows what is in the stream. One that has ended left its partition to another.
fn is_wholly_served(served: &[Served], number: u64) -> bool {
    let mut running = served
        .iter()
        .filter(|served| served.last != ENDED)
        .peekable();
    running.peek().is_some() && running.all(|served| served.whole >= number)
}

/// A consumer's side of the requests.
#[derive(Debug)]
pub(super) struct FlushServer {
    requests: FlushRequests,
    asked: watch::Receiver<u64>,
    consumer: usize,
}

impl FlushServer {
    /// The newest request, if it is not served yet.
    pub(super) fn pending(&self) -> Option<u64> {
        let newest = *self.asked.borrow();
        (newest > self.requests.last_served(self.consumer)).then_some(newest)
    }

    /// Returns when a request is pending.
    pub(super) async fn asked(&self) {
        let last = self.requests.last_served(self.consumer);
        let mut asked = self.asked.clone();
        // The sender lives as long as `requests`.
        let _newest = asked.wait_for(|newest| *newest > last).await;
    }

    /// Ends the wait for this request, served as well as could be: wholly, if nothing is left in the stream that was there
    /// when it came.
    pub(super) fn served(&self, number: u64, is_whole: bool) {
        self.requests.note_served(self.consumer, number, is_whole);
    }
}

impl Drop for FlushServer {
    fn drop(&mut self) {
        self.requests.note_served(self.consumer, ENDED, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn took(requests: &FlushRequests) -> Duration {
        let begun = Instant::now();
        requests.flush().await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn without_consumers_nobody_waits() {
        let requests = FlushRequests::default();
        assert_eq!(took(&requests).await, Duration::ZERO);
        drop(requests.serve());
        tokio::time::sleep(EVERY_MIN).await;
        assert_eq!(took(&requests).await, Duration::ZERO, "it has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn all_callers_of_a_second_share_one_flush() {
        let requests = FlushRequests::default();
        let server = requests.serve();
        let callers: Vec<_> = (0..50)
            .map(|_| {
                let requests = requests.clone();
                tokio::spawn(async move { requests.flush().await })
            })
            .collect();
        server.asked().await;
        let number = server.pending().unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(callers.iter().all(|caller| !caller.is_finished()));
        server.served(number, true);
        for caller in callers {
            caller.await.unwrap();
        }
        assert_eq!(server.pending(), None);
        assert_eq!(took(&requests).await, Duration::ZERO, "it is fresh enough");
        assert_eq!(server.pending(), None, "one flush a second");
        tokio::time::sleep(EVERY_MIN).await;
        let asking = tokio::spawn({
            let requests = requests.clone();
            async move { requests.flush().await }
        });
        server.asked().await;
        assert!(server.pending().is_some_and(|next| next > number));
        asking.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_consumer_that_does_not_answer_costs_a_second_once() {
        let requests = FlushRequests::default();
        let server = requests.serve();
        assert_eq!(took(&requests).await, WAIT_MAX);
        for _ in 0..3 {
            assert_eq!(took(&requests).await, Duration::ZERO);
            tokio::time::sleep(EVERY_MIN).await;
        }
        let number = server.pending().unwrap();
        server.served(number, true);
        assert_eq!(took(&requests).await, WAIT_MAX, "it may answer again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_flush_begins_after_it_was_asked_for_and_is_asked_for_until_nothing_is_left() {
        let requests = FlushRequests::default();
        assert!(
            !requests.flush_all(EVERY_MIN).await,
            "nobody knows what is in the stream"
        );
        let server = requests.serve();
        tokio::time::sleep(EVERY_MIN).await;
        // One is under way, which may have missed the last clicks.
        let joined = tokio::spawn({
            let requests = requests.clone();
            async move { requests.flush().await }
        });
        server.asked().await;
        let under_way = server.pending().unwrap();
        let asking = tokio::spawn({
            let requests = requests.clone();
            async move { requests.flush_all(10 * WAIT_MAX).await }
        });
        tokio::task::yield_now().await;
        server.served(under_way, true);
        joined.await.unwrap();
        for is_whole in [false, false, true] {
            assert!(!asking.is_finished());
            server.asked().await;
            server.served(server.pending().unwrap(), is_whole);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(asking.await.unwrap());
        // A partition went to another process.
        drop(requests.serve());
        let asking = tokio::spawn({
            let requests = requests.clone();
            async move { requests.flush_all(WAIT_MAX).await }
        });
        server.asked().await;
        server.served(server.pending().unwrap(), true);
        assert!(asking.await.unwrap(), "what has ended is not waited for");
        let unanswered = Instant::now();
        assert!(!requests.flush_all(WAIT_MAX).await);
        assert_eq!(unanswered.elapsed(), WAIT_MAX);
    }
}
