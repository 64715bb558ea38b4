//! What the tests of key files on far engines share.

pub(crate) mod damage;
pub(crate) mod lossy;
pub(crate) mod preloaders;

use curt_core::PortResult;
use curt_core::ports::{KeyFile, KeyFileLayout};
use curt_testkit::sample::keys;

pub(crate) const LAYOUT: KeyFileLayout = KeyFileLayout {
    width: 7,
    block_keys: 10,
};

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

/// Short in `make test`, long with `CURT_TEST_LENGTH=full`: the same assertions either way.
pub(crate) fn length<T>(short: T, full: T) -> T {
    let is_full = std::env::var("CURT_TEST_LENGTH").is_ok_and(|length| length == "full");
    if is_full { full } else { short }
}
