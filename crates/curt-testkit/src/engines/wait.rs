use std::time::Duration;

use anyhow::{Result, bail};

/// How often something is looked at while waiting for it.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often at most: three minutes and more, which an engine on Java needs at times when others start beside it. Looks
/// are counted and not time, because a machine that stands still for a while is no reason to fail.
pub(super) const LOOKS_MAX: u32 = 9_000;

/// Returns when it is so; fails when it does not come to be in some minutes, or nobody can tell.
pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    for _ in 0..LOOKS_MAX {
        if is_so()? {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    bail!("waited in vain until {what}")
}
