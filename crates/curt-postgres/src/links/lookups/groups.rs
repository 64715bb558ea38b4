//! Look-ups that share a statement.
//!
//! A look-up that finds a free place takes it, and goes when its thread has seen to everything else that is ready: look-ups
//! that come meanwhile join it. Those that come while every place is taken wait together for the next one that gets free.
//! So under load many look-ups share one round trip with its wake-ups, and nobody ever waits on a timer.
//!
//! The one that waited longest leads its group: it asks for all of them as a part of its own request, and not in a task,
//! which would cost a wake-up more. When its client goes away, the others start over.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Look-ups of one statement.
const GROUP_MAX: usize = 64;

/// Look-ups `W` that are answered with `A`.
pub(super) struct Groups<W, A> {
    places: usize,
    state: Mutex<State<W, A>>,
}

struct State<W, A> {
    taken: usize,
    /// Whether the look-up that took the last place waits for others.
    is_forming: bool,
    waiting: VecDeque<Waiting<W, A>>,
}

struct Waiting<W, A> {
    wanted: W,
    reply: oneshot::Sender<Turn<W, A>>,
}

pub(super) enum Joined<W, A> {
    Leading(Forming<W, A>),
    /// An error: the leader's client went away.
    Waiting(oneshot::Receiver<Turn<W, A>>),
}

/// What comes of waiting.
pub(super) enum Turn<W, A> {
    Lead(Group<W, A>),
    Answered(A),
}

impl<W, A> Groups<W, A> {
    pub(super) fn new(places: usize) -> Arc<Self> {
        let state = State {
            taken: 0,
            is_forming: false,
            waiting: VecDeque::new(),
        };
        Arc::new(Self {
            places,
            state: Mutex::new(state),
        })
    }

    /// Takes a place, or else has `wanted` wait.
    pub(super) fn join(self: &Arc<Self>, wanted: W) -> Joined<W, A> {
        let mut state = self.lock();
        if !state.is_forming && state.taken < self.places {
            state.taken += 1;
            state.is_forming = true;
            return Joined::Leading(Forming {
                until: FormingUntil(Arc::clone(self)),
                place: Place(Arc::clone(self)),
                wanted,
            });
        }
        let (reply, turn) = oneshot::channel();
        state.waiting.push_back(Waiting { wanted, reply });
        Joined::Waiting(turn)
    }

    /// Gives the places that are free to those that wait.
    fn hand_out_places(self: &Arc<Self>) {
        while let Some(group) = self.next_group() {
            let mut group = group.into_iter();
            let Some(leader) = group.next() else { return };
            let group = Group {
                place: Place(Arc::clone(self)),
                wanted: leader.wanted,
                others: group.collect(),
            };
            // A leader that has just gone away drops the group, and with it the place; the others start over.
            leader.reply.send(Turn::Lead(group)).ok();
        }
    }

    fn next_group(&self) -> Option<Vec<Waiting<W, A>>> {
        let mut state = self.lock();
        if state.is_forming || state.taken == self.places {
            return None;
        }
        let group = state.take_waiting(GROUP_MAX);
        state.taken += usize::from(!group.is_empty());
        (!group.is_empty()).then_some(group)
    }

    fn lock(&self) -> MutexGuard<'_, State<W, A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W, A> State<W, A> {
    /// Takes those that wait and whose callers are still there.
    fn take_waiting(&mut self, max: usize) -> Vec<Waiting<W, A>> {
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(waiting) = self.waiting.pop_front()
        {
            if !waiting.reply.is_closed() {
                taken.push(waiting);
            }
        }
        taken
    }
}

/// The right to have a statement under way.
struct Place<W, A>(Arc<Groups<W, A>>);

impl<W, A> Drop for Place<W, A> {
    fn drop(&mut self) {
        self.0.lock().taken -= 1;
        self.0.hand_out_places();
    }
}

/// A look-up that has a place and lets others join. Given up, it leaves the place to those.
pub(super) struct Forming<W, A> {
    // Goes before the place, which is for others only then.
    until: FormingUntil<W, A>,
    place: Place<W, A>,
    wanted: W,
}

impl<W, A> Forming<W, A> {
    /// Lets the thread see to what is ready, and takes the look-ups that came of it along.
    pub(super) async fn gather(self) -> Group<W, A> {
        tokio::task::yield_now().await;
        let groups = &self.place.0;
        let others = groups.lock().take_waiting(GROUP_MAX - 1);
        drop(self.until);
        groups.hand_out_places();
        Group {
            place: self.place,
            wanted: self.wanted,
            others,
        }
    }
}

/// While it is there, others join the look-up that took the last place.
struct FormingUntil<W, A>(Arc<Groups<W, A>>);

impl<W, A> Drop for FormingUntil<W, A> {
    fn drop(&mut self) {
        self.0.lock().is_forming = false;
    }
}

/// Look-ups for one statement, in the hands of the one that leads.
pub(super) struct Group<W, A> {
    place: Place<W, A>,
    wanted: W,
    others: Vec<Waiting<W, A>>,
}

impl<W, A> Group<W, A> {
    /// What the one that leads looks up.
    pub(super) fn leader(&self) -> &W {
        &self.wanted
    }

    /// How many others there are.
    pub(super) fn others(&self) -> usize {
        self.others.len()
    }

    /// What is looked up, the leader's first.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &W> {
        let others = self.others.iter().map(|other| &other.wanted);
        std::iter::once(&self.wanted).chain(others)
    }

    /// Gives up the place and gives the others their answers, in the order of [`wanted`](Self::wanted), and returns that
    /// of the leader.
    pub(super) fn answer(self, answers: impl IntoIterator<Item = A>) -> Option<A> {
        drop(self.place);
        let mut answers = answers.into_iter();
        let own = answers.next();
        for (other, answer) in self.others.into_iter().zip(answers) {
            // A caller that has gone away is not told.
            other.reply.send(Turn::Answered(answer)).ok();
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = Arc<Groups<u32, u32>>;
    type Receiver = oneshot::Receiver<Turn<u32, u32>>;

    fn begin(groups: &Numbers, wanted: u32) -> Forming<u32, u32> {
        match groups.join(wanted) {
            Joined::Leading(forming) => forming,
            Joined::Waiting(_) => panic!("no place is free"),
        }
    }

    /// A group of one.
    async fn take_place(groups: &Numbers) -> Group<u32, u32> {
        let group = begin(groups, 99).gather().await;
        assert_eq!(wanted_by(&group), [99]);
        group
    }

    fn wait(groups: &Numbers, wanted: u32) -> Receiver {
        match groups.join(wanted) {
            Joined::Leading(_) => panic!("a place is free"),
            Joined::Waiting(turn) => turn,
        }
    }

    fn lead(turn: &mut Receiver) -> Group<u32, u32> {
        match turn.try_recv() {
            Ok(Turn::Lead(group)) => group,
            _ => panic!("not the leader"),
        }
    }

    fn wanted_by(group: &Group<u32, u32>) -> Vec<u32> {
        group.wanted().copied().collect()
    }

    fn assert_answered(turn: &mut Receiver, answer: u32) {
        assert!(matches!(turn.try_recv(), Ok(Turn::Answered(told)) if told == answer));
    }

    fn assert_to_start_over(turn: &mut Receiver) {
        let closed = oneshot::error::TryRecvError::Closed;
        assert!(matches!(turn.try_recv(), Err(error) if error == closed));
    }

    #[tokio::test]
    async fn those_that_wait_share_the_next_place_and_each_gets_its_own_answer() {
        let groups = Groups::new(1);
        let place = take_place(&groups).await;
        let mut turns: Vec<_> = (0..3).map(|wanted| wait(&groups, wanted)).collect();
        assert!(turns.iter_mut().all(|turn| turn.try_recv().is_err()));
        drop(place);
        let group = lead(&mut turns[0]);
        assert_eq!(wanted_by(&group), [0, 1, 2]);
        assert_eq!(group.answer([0, 10, 20]), Some(0));
        assert_answered(&mut turns[1], 10);
        assert_answered(&mut turns[2], 20);
        take_place(&groups).await;
    }

    #[tokio::test]
    async fn those_that_come_before_the_thread_is_idle_go_together() {
        let groups = Groups::new(2);
        let first = begin(&groups, 1);
        let mut second = wait(&groups, 2);
        let group = first.gather().await;
        assert_eq!(wanted_by(&group), [1, 2]);
        // It is on its way: the next one has a place of its own.
        assert_eq!(wanted_by(&begin(&groups, 3).gather().await), [3]);
        assert_eq!(group.answer([10, 20]), Some(10));
        assert_answered(&mut second, 20);
    }

    #[tokio::test]
    async fn a_leader_that_goes_away_leaves_the_others_to_start_over() {
        let groups = Groups::new(1);
        let place = take_place(&groups).await;
        let mut turns: Vec<_> = (0..2).map(|wanted| wait(&groups, wanted)).collect();
        drop(place);
        drop(lead(&mut turns[0]));
        assert_to_start_over(&mut turns[1]);
        take_place(&groups).await;
    }

    #[tokio::test]
    async fn a_leader_that_goes_away_before_it_went_leaves_its_place_to_the_next() {
        let groups = Groups::new(1);
        let mut gathering = Box::pin(begin(&groups, 1).gather());
        let mut turn = wait(&groups, 2);
        assert!(futures_util::poll!(&mut gathering).is_pending());
        drop(gathering);
        drop(lead(&mut turn));
        // Never polled at all.
        let forming = begin(&groups, 3);
        let mut turn = wait(&groups, 4);
        drop(forming);
        drop(lead(&mut turn));
        take_place(&groups).await;
    }

    #[tokio::test]
    async fn callers_that_went_away_while_they_waited_are_not_looked_up() {
        let groups = Groups::new(1);
        let place = take_place(&groups).await;
        drop(wait(&groups, 1));
        let mut turn = wait(&groups, 2);
        drop(place);
        assert_eq!(wanted_by(&lead(&mut turn)), [2]);
        take_place(&groups).await;
    }

    #[tokio::test]
    async fn a_group_has_an_end_and_the_rest_gets_the_next_place() {
        let groups = Groups::new(2);
        let first = begin(&groups, 0);
        let many = u32::try_from(GROUP_MAX).unwrap();
        let mut turns: Vec<_> = (0..many).map(|wanted| wait(&groups, wanted)).collect();
        assert_eq!(wanted_by(&first.gather().await).len(), GROUP_MAX);
        assert_eq!(wanted_by(&lead(&mut turns[GROUP_MAX - 1])), [many - 1]);
    }
}
