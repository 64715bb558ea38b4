//! Calls that share a statement.
//!
//! A commit costs a round trip and a sync of the disk whatever it holds. So a few groups are under way at a time, and
//! calls that come meanwhile wait together for the next one. A call that finds a free place goes at once: nobody waits
//! on a timer. Groups run as tasks of their own, because a caller that goes away must not take the others' answers
//! with it.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_core::limits::COMMIT_GROUP_MAX;
use curt_core::ports::{InsertReply, InsertRequest};
use curt_core::{ErrorKind, PortError, PortResult};
use tokio::sync::oneshot;

use crate::postgres::failure::BACKEND;

/// Groups that are under way at once: enough to keep the engine busy while the disk syncs, and few enough to fill.
const GROUPS_MAX: usize = 4;

/// One call with the way back to its caller.
pub(super) struct Call {
    pub(super) request: InsertRequest,
    reply: oneshot::Sender<PortResult<InsertReply>>,
}

impl Call {
    pub(super) fn answer(self, answer: PortResult<InsertReply>) {
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
}

impl Queue {
    /// Hands the request to a group and waits for its answer. `run` answers every call of a group.
    pub(super) async fn call<F>(
        self: &Arc<Self>,
        op: &'static str,
        request: InsertRequest,
        run: impl Fn(Vec<Call>) -> F + Send + 'static,
    ) -> PortResult<InsertReply>
    where
        F: Future<Output = ()> + Send,
    {
        let (reply, answer) = oneshot::channel();
        if let Some(mut place) = self.join(Call { request, reply }) {
            tokio::spawn(async move {
                while let Some(group) = place.next_group() {
                    run(group).await;
                }
            });
        }
        answer.await.unwrap_or_else(|_| {
            let detail = "the group broke off; it is unknown whether it committed";
            Err(PortError::new(ErrorKind::Timeout, BACKEND, op, detail))
        })
    }

    /// Lets the call wait, and returns a place for a new group if there is one.
    fn join(self: &Arc<Self>, call: Call) -> Option<Place> {
        let mut state = self.lock();
        state.waiting.push_back(call);
        if state.groups == GROUPS_MAX {
            return None;
        }
        state.groups += 1;
        Some(Place {
            queue: Arc::clone(self),
            held: true,
        })
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
        while let Some(call) = state.waiting.pop_front_if(|call| {
            group.is_empty() || links + call.request.links.len() <= COMMIT_GROUP_MAX
        }) {
            links += call.request.links.len();
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

    use curt_core::UnixMillis;

    use super::*;

    fn request() -> InsertRequest {
        InsertRequest {
            links: Vec::new(),
            once: None,
            now: UnixMillis(0),
        }
    }

    async fn answer_slowly(group: Vec<Call>) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        for call in group {
            call.answer(Ok(InsertReply::Mismatch));
        }
    }

    #[tokio::test]
    async fn every_call_is_answered_and_every_place_given_back() {
        let queue = Arc::new(Queue::default());
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.call("test", request(), answer_slowly).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), InsertReply::Mismatch);
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
            let error = queue.call("test", request(), break_off).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Timeout);
        }
        let answer = queue.call("test", request(), answer_slowly).await;
        assert_eq!(answer.unwrap(), InsertReply::Mismatch);
    }
}
