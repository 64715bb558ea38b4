use curt_core::Key;
use curt_core::ports::BatchId;

/// Names batches: who took it, for which pool shard, and a running number. Whoever finds an open batch reads from its
/// name whether its owner still lives and where its keys were going.
#[derive(Clone, Debug)]
pub(crate) struct BatchNames {
    instance: Box<str>,
    next: u64,
    returns: u64,
}

impl BatchNames {
    pub(crate) fn new(instance: Box<str>) -> Self {
        Self {
            instance,
            next: 0,
            returns: 0,
        }
    }

    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// Whether a batch was ever taken under one of these names.
    pub(crate) fn are_used(&self) -> bool {
        self.next > 0
    }

    /// For keys that go from the ring back to a pool. No ledger ever sees it.
    pub(crate) fn name_return(&mut self) -> BatchId {
        self.returns += 1;
        BatchId(format!("{}.ring.{}", self.instance, self.returns).into())
    }

    pub(crate) fn name(&mut self, pool: usize) -> BatchId {
        self.next += 1;
        BatchId(format!("{}.{pool}.{}", self.instance, self.next).into())
    }
}

pub(crate) fn owner(batch: &BatchId) -> &str {
    batch.0.split('.').next().unwrap_or_default()
}

pub(crate) fn pool(batch: &BatchId) -> Option<usize> {
    batch.0.split('.').nth(1)?.parse().ok()
}

/// The lock that a living owner of batches holds.
pub(crate) fn owner_lock(instance: &str) -> String {
    format!("key-owners/{instance}")
}

/// Keys on their way from a ledger to a pool shard.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) ledger: usize,
    pub(crate) batch: BatchId,
    pub(crate) keys: Vec<Key>,
    /// How often a part of the batch was delivered already.
    pub(crate) part: u32,
}

impl Delivery {
    /// The name under which the pool remembers this push. Each part has its own, or it would count as a repetition.
    pub(crate) fn push_name(&self) -> BatchId {
        match self.part {
            0 => self.batch.clone(),
            part => BatchId(format!("{}.{part}", self.batch.0).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_name_says_whose_it_is_and_where_it_goes() {
        let mut names = BatchNames::new("f00d".into());
        let (first, second) = (names.name(3), names.name(3));
        assert_ne!(first, second);
        assert_eq!((owner(&first), pool(&first)), ("f00d", Some(3)));
        let foreign = BatchId("by hand".into());
        assert_eq!((owner(&foreign), pool(&foreign)), ("by hand", None));
    }
}
