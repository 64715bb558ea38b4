//! Calls that share a statement.
//!
//! A commit costs a round trip and a sync of the disk whatever it holds. So a few groups are under way at a time, and
//! calls that come meanwhile wait together for the next one. A call that finds a free place goes at once: nobody waits
//! on a timer. Groups run as tasks of their own, because a caller that goes away must not take the others' answers
//! with it.
//!
//! A caller waits no longer than a write may take, its time in the queue included. What still waits then has not
//! happened; what is in a group may have.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use curt_core::limits::COMMIT_GROUP_MAX;
use curt_core::ports::{Inserted, RequestToken};
use curt_core::{ErrorKind, Link, PortError, PortResult, ShardMap};
use tokio::sync::oneshot;

use crate::failure::BACKEND;

/// The place of a call in the order in which calls came.
type Number = u64;

/// Groups that are under way at once: enough to keep the engine busy while the disk syncs, and few enough to fill.
const GROUPS_MAX: usize = 4;

/// One call with the way back to its caller.
pub(super) struct Call {
    number: Number,
    pub(super) links: Vec<Link>,
    pub(super) token: Option<RequestToken>,
    /// The call was routed by it.
    pub(super) map: Arc<ShardMap>,
    reply: oneshot::Sender<PortResult<Vec<Inserted>>>,
}

impl Call {
    pub(super) fn answer(self, answer: PortResult<Vec<Inserted>>) {
        // A caller that has gone away is not told.
        self.reply.send(answer).ok();
    }
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Call>,
    groups: usize,
    /// Calls that came so far.
    calls: Number,
}

impl Queue {
    /// Hands the request to a group and waits for its answer, at most for `timeout`. `run` answers every call of a group.
    pub(super) async fn call<F>(
        self: &Arc<Self>,
        op: &'static str,
        (links, token, map): (Vec<Link>, Option<RequestToken>, Arc<ShardMap>),
        timeout: Duration,
        run: impl Fn(Vec<Call>) -> F + Send + 'static,
    ) -> PortResult<Vec<Inserted>>
    where
        F: Future<Output = ()> + Send,
    {
        let (reply, answer) = oneshot::channel();
        let call = Call {
            number: 0,
            links,
            token,
            map,
            reply,
        };
        let (number, place) = self.join(call);
        if let Some(mut place) = place {
            #[expect(
                clippy::disallowed_methods,
                reason = "answers calls of others, so that no caller may end it"
            )]
            tokio::spawn(async move {
                while let Some(group) = place.next_group() {
                    run(group).await;
                }
            });
        }
        let (kind, detail) = match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(answer)) => return answer,
            Ok(Err(_)) => (
                ErrorKind::Timeout,
                "the group broke off; it is unknown whether it committed",
            ),
            Err(_) if self.leave(number) => (
                ErrorKind::Throttled,
                "earlier writes do not come to an end; nothing was changed",
            ),
            Err(_) => (
                ErrorKind::Timeout,
                "no answer in time; it is unknown whether it committed",
            ),
        };
        Err(PortError::new(kind, BACKEND, op, detail))
    }

    /// Lets the call wait, and returns a place for a new group if there is one.
    fn join(self: &Arc<Self>, call: Call) -> (Number, Option<Place>) {
        let mut state = self.lock();
        state.calls += 1;
        let number = state.calls;
        state.waiting.push_back(Call { number, ..call });
        if state.groups == GROUPS_MAX {
            return (number, None);
        }
        state.groups += 1;
        let place = Place {
            queue: Arc::clone(self),
            held: true,
        };
        (number, Some(place))
    }

    /// Takes a call out again that no group has fetched, and says whether it was there.
    fn leave(&self, number: Number) -> bool {
        let mut state = self.lock();
        let place = state.waiting.iter().position(|call| call.number == number);
        place
            .and_then(|place| state.waiting.remove(place))
            .is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to have a group under way.
struct Place {
    queue: Arc<Queue>,
    held: bool,
}

impl Place {
    /// The calls that wait, as far as one statement goes. None: the place is given up, in the same step, so that no
    /// call can come to wait without anybody to fetch it.
    fn next_group(&mut self) -> Option<Vec<Call>> {
        let mut state = self.queue.lock();
        let mut group: Vec<Call> = Vec::new();
        let mut links = 0;
        while let Some(call) = state
            .waiting
            .pop_front_if(|call| group.is_empty() || links + call.links.len() <= COMMIT_GROUP_MAX)
        {
            links += call.links.len();
            group.push(call);
        }
        if group.is_empty() {
            state.groups -= 1;
            self.held = false;
            return None;
        }
        Some(group)
    }
}

/// A group that ends early, by a panic or because the server stops, leaves nobody waiting for ever.
impl Drop for Place {
    fn drop(&mut self) {
        if !self.held {
            return;
        }
        let mut state = self.queue.lock();
        state.groups -= 1;
        if state.groups == 0 {
            state.waiting.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    async fn call<F: Future<Output = ()> + Send>(
        queue: &Arc<Queue>,
        run: impl Fn(Vec<Call>) -> F + Send + 'static,
    ) -> PortResult<Vec<Inserted>> {
        let request = (vec![], None, Arc::default());
        queue.call("test", request, TIMEOUT, run).await
    }

    async fn answer_slowly(group: Vec<Call>) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        for call in group {
            call.answer(Ok(vec![Inserted::Conflict]));
        }
    }

    #[tokio::test]
    async fn every_call_is_answered_and_every_place_given_back() {
        let queue = Arc::new(Queue::default());
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { call(&queue, answer_slowly).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), [Inserted::Conflict]);
        }
        tokio::task::yield_now().await;
        assert_eq!(queue.lock().groups, 0);
    }

    #[tokio::test]
    async fn a_group_that_breaks_off_is_an_unknown_outcome_and_blocks_nobody() {
        async fn break_off(_: Vec<Call>) {
            panic!("on purpose");
        }
        let queue = Arc::new(Queue::default());
        for _ in 0..2 * GROUPS_MAX {
            let error = call(&queue, break_off).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Timeout);
        }
        let answer = call(&queue, answer_slowly).await;
        assert_eq!(answer.unwrap(), [Inserted::Conflict]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_behind_stuck_groups_end_in_time_and_say_that_nothing_happened() {
        async fn hang(_: Vec<Call>) {
            std::future::pending().await
        }
        let queue = Arc::new(Queue::default());
        let begun = tokio::time::Instant::now();
        let mut calls = Vec::new();
        for _ in 0..GROUPS_MAX + 3 {
            let queue = Arc::clone(&queue);
            calls.push(tokio::spawn(async move { call(&queue, hang).await }));
            // A group that begins takes all that wait: each of the first ones is to find a group of its own.
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
        }
        let mut kinds = Vec::new();
        for call in calls {
            kinds.push(call.await.unwrap().unwrap_err().kind);
        }
        assert_eq!(begun.elapsed(), TIMEOUT);
        let of = |wanted| kinds.iter().filter(|kind| **kind == wanted).count();
        assert_eq!(of(ErrorKind::Timeout), GROUPS_MAX, "may have happened");
        assert_eq!(of(ErrorKind::Throttled), 3, "still waited");
        assert!(queue.lock().waiting.is_empty());
    }
}
