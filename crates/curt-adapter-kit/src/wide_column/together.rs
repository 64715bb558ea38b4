use curt_core::PortResult;
use futures_util::stream::{self, StreamExt, TryStreamExt};

/// Statements of one call that are under way at once.
const AT_ONCE: usize = 64;

/// Runs calls beside each other, [`AT_ONCE`] at most, and returns what they answered in order. The first failure ends it.
pub fn together<T, F>(
    calls: impl IntoIterator<Item = F>,
) -> impl Future<Output = PortResult<Vec<T>>>
where
    F: Future<Output = PortResult<T>>,
{
    // Taken out of the iterator first: its borrows would have to hold for any lifetime.
    let calls: Vec<F> = calls.into_iter().collect();
    run(calls)
}

async fn run<T, F: Future<Output = PortResult<T>>>(calls: Vec<F>) -> PortResult<Vec<T>> {
    stream::iter(calls).buffered(AT_ONCE).try_collect().await
}
