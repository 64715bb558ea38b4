use curt_core::ports::Salt;
use curt_core::{Day, PortResult};

use super::runs::stored_day;
use crate::decode::{corrupt, hash};
use crate::engine::Engine;

const FIND: &str = "SELECT salt FROM click_salts WHERE day = $1";
/// Of processes that come at once, the first to insert decides, and all others read what it did.
const KEEP: &str = "INSERT INTO click_salts (day, salt) VALUES ($1, $2) \
     ON CONFLICT (day) DO UPDATE SET salt = click_salts.salt RETURNING salt";
const FORGET: &str = "DELETE FROM click_salts WHERE day < $1";

/// The salt that the day has, or `fresh` from now on.
pub(super) async fn keep_salt(engine: &Engine, day: Day, fresh: Salt) -> PortResult<Salt> {
    const OP: &str = "read the salt of a day";
    let day = stored_day(day);
    let mut rows = engine.read(OP, FIND, &[&day]).await?;
    if rows.is_empty() {
        rows = engine.write(OP, KEEP, &[&day, &&fresh[..]]).await?;
    }
    let row = rows.first().ok_or_else(|| corrupt(OP, "no salt"))?;
    hash(OP, row, 0)
}

pub(super) async fn forget_salts(engine: &Engine, before: Day) -> PortResult<()> {
    engine
        .write("forget salts", FORGET, &[&stored_day(before)])
        .await
        .map(drop)
}
