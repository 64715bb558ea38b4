//! What the tests of key files on far engines share.

pub(crate) mod damage;
pub(crate) mod lossy;
pub(crate) mod preloaders;

use std::time::{Duration, Instant};

use curt_core::ports::{KeyFile, KeyFileLayout};
use curt_core::{ErrorKind, PortResult};
use curt_testkit::length::time_max;
use curt_testkit::sample::keys;

pub(crate) const LAYOUT: KeyFileLayout = KeyFileLayout {
    width: 7,
    block_keys: 10,
};

/// Most that a single call to an engine that is away may take: it can ask several times.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(60);

/// Writes and publishes a file of sample keys.
pub(crate) async fn publish(
    files: &dyn KeyFile,
    name: &str,
    prefix: &str,
    count: usize,
) -> PortResult<()> {
    let mut writer = files.create(name, LAYOUT).await?;
    writer.append(&keys(prefix, count)).await?;
    writer.publish().await?;
    Ok(())
}

/// The kind of the failure, which must come in time.
pub(crate) async fn failure<T>(what: &str, call: impl Future<Output = PortResult<T>>) -> ErrorKind {
    let started = Instant::now();
    let Err(error) = call.await else {
        panic!("{what}: did not fail");
    };
    let elapsed = started.elapsed();
    assert!(elapsed < time_max(CALL_MAX), "{what}: took {elapsed:?}");
    assert!(error.is_transient(), "{what}: {error}");
    error.kind
}
