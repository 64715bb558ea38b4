use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use curt_core::LinkId;
use tokio::time::Instant;

/// Links that are remembered at most. With more, every link counts as changed for a while.
const REMEMBERED_MAX: usize = 65_536;

/// The links that this process changed so lately that a replica may still show what was before: they are looked up at
/// the leader, so that a process sees its own writes at once.
#[derive(Default)]
pub(super) struct RecentWrites {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ends: HashMap<LinkId, Instant>,
    order: VecDeque<(Instant, LinkId)>,
    /// Until when every link counts as changed.
    all_until: Option<Instant>,
}

impl RecentWrites {
    /// Remembers a write that has ended, or may have. `lag_max`: for how long replicas may not show it.
    pub(super) fn note(&self, id: &LinkId, lag_max: Option<Duration>) {
        let Some(lag_max) = lag_max else {
            return;
        };
        let (now, mut state) = (Instant::now(), self.lock());
        state.forget_before(now);
        let until = now + lag_max;
        if state.order.len() == REMEMBERED_MAX {
            state.all_until = Some(until);
            return;
        }
        state.ends.insert(id.clone(), until);
        state.order.push_back((until, id.clone()));
    }

    pub(super) fn contains(&self, id: &LinkId) -> bool {
        let (now, state) = (Instant::now(), self.lock());
        let is_all = state.all_until.is_some_and(|until| now <= until);
        is_all || state.ends.get(id).is_some_and(|until| now <= *until)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_before(&mut self, now: Instant) {
        while let Some((until, _)) = self.order.front()
            && *until < now
        {
            let Some((until, id)) = self.order.pop_front() else {
                return;
            };
            // It may have been written again since.
            if self.ends.get(&id) == Some(&until) {
                self.ends.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use curt_core::{DomainId, Key};

    const LAG: Option<Duration> = Some(Duration::from_secs(1));

    fn id(number: usize) -> LinkId {
        LinkId::new(
            DomainId::DEFAULT,
            Key::parse(&format!("key-{number}")).unwrap(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_remembered_as_long_as_a_replica_may_not_have_it() {
        let recent = RecentWrites::default();
        recent.note(&id(1), LAG);
        tokio::time::advance(Duration::from_millis(900)).await;
        recent.note(&id(2), LAG);
        assert!(recent.contains(&id(1)) && recent.contains(&id(2)));
        assert!(!recent.contains(&id(3)));
        recent.note(&id(1), LAG);
        tokio::time::advance(Duration::from_millis(200)).await;
        assert!(recent.contains(&id(1)), "written again");
        tokio::time::advance(Duration::from_millis(900)).await;
        recent.note(&id(3), LAG);
        assert!(!recent.contains(&id(1)) && !recent.contains(&id(2)));
        assert_eq!(recent.lock().ends.len(), 1);
        recent.note(&id(4), None);
        assert!(!recent.contains(&id(4)), "no replica is read");
    }

    #[tokio::test(start_paused = true)]
    async fn with_too_many_writes_every_link_counts_as_changed() {
        let recent = RecentWrites::default();
        for number in 0..REMEMBERED_MAX {
            recent.note(&id(number), LAG);
        }
        assert!(!recent.contains(&id(REMEMBERED_MAX)));
        recent.note(&id(REMEMBERED_MAX), LAG);
        assert!(recent.contains(&id(REMEMBERED_MAX + 1)));
        assert_eq!(recent.lock().order.len(), REMEMBERED_MAX);
        tokio::time::advance(Duration::from_millis(1_100)).await;
        assert!(!recent.contains(&id(REMEMBERED_MAX + 1)));
    }
}
