use std::collections::VecDeque;

use curt_core::Key;

/// A fixed ring of keys: first in, first out, allocated once. Refills stop at the capacity; only keys that come back
/// unused may stand above it.
#[derive(Debug)]
pub(crate) struct Ring {
    keys: VecDeque<Key>,
    capacity: usize,
    /// Keys that left the ring, over its life. With the length it tells which keys have been handed out.
    handed_out: u64,
}

impl Ring {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            keys: VecDeque::with_capacity(capacity),
            capacity,
            handed_out: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.keys.iter().cloned().collect()
    }

    /// How many keys still fit.
    pub(crate) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.keys.len())
    }

    /// Keys that left the ring, over its life.
    pub(crate) fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Keys that ever came in: what [`handed_out`](Self::handed_out) reaches once all of them have left.
    pub(crate) fn received(&self) -> u64 {
        self.handed_out + self.keys.len() as u64
    }

    pub(crate) fn pop(&mut self) -> Option<Key> {
        let key = self.keys.pop_front()?;
        self.handed_out += 1;
        Some(key)
    }

    /// Appends keys; callers ask for [`room`](Self::room) first.
    pub(crate) fn append(&mut self, keys: Vec<Key>) {
        self.keys.extend(keys);
    }

    /// Puts a key that was handed out and not used back to the front.
    pub(crate) fn put_back(&mut self, key: Key) {
        self.keys.push_front(key);
        self.handed_out = self.handed_out.saturating_sub(1);
    }

    /// Empties the ring.
    pub(crate) fn drain(&mut self) -> Vec<Key> {
        self.handed_out += self.keys.len() as u64;
        self.keys.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Append(usize),
        Pop,
        PutBack,
        Drain,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0_usize..12).prop_map(Step::Append),
            8 => Just(Step::Pop),
            2 => Just(Step::PutBack),
            1 => Just(Step::Drain),
        ];
        proptest::collection::vec(step, 0..200)
    }

    fn key(number: u64) -> Key {
        Key::parse(&format!("k{number}")).unwrap()
    }

    proptest! {
        /// The ring behaves like a queue of bounded length: nothing is lost, doubled or reordered.
        #[test]
        fn a_ring_is_a_bounded_queue(capacity in 1_usize..16, steps in steps()) {
            let mut ring = Ring::new(capacity);
            let mut model = VecDeque::new();
            let mut next = 0_u64;
            let mut last = None;
            for step in steps {
                match step {
                    Step::Append(count) => {
                        let count = count.min(ring.room()) as u64;
                        let keys: Vec<Key> = (next..next + count).map(key).collect();
                        next += count;
                        model.extend(keys.clone());
                        ring.append(keys);
                        prop_assert!(count == 0 || ring.len() <= capacity);
                    }
                    Step::Pop => {
                        last = model.pop_front();
                        prop_assert_eq!(ring.pop(), last.clone());
                    }
                    Step::PutBack => if let Some(key) = last.take() {
                        ring.put_back(key.clone());
                        model.push_front(key);
                    },
                    Step::Drain => prop_assert_eq!(ring.drain(), Vec::from_iter(model.drain(..))),
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.room(), capacity.saturating_sub(model.len()));
                prop_assert_eq!(ring.received(), ring.handed_out() + model.len() as u64);
            }
        }
    }
}
