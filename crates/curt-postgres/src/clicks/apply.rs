//! Adding a flush.
//!
//! Locks are come to in the same order by everybody, so that no two flushes wait for each other in a circle: the
//! partition's offset, then days from the last link to everything. That row is everybody's, and so it comes last.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use curt_core::ports::{ClickDamage, ClickWindow, StreamPartition};
use curt_core::{ErrorKind, PortError, PortResult, SubjectDay, UnixMillis, names};
use deadpool_postgres::Transaction;
use tokio_postgres::{Error, Row};

use super::blocks;
use super::subject::{Subject, stored_day};
use crate::decode::corrupt;
use crate::engine::{Engine, Session, Value, column};
use crate::failure::BACKEND;
use curt_adapter_kit::Effect;
use curt_adapter_kit::click_blocks::{self, NewBlock};
use curt_adapter_kit::click_days::StoredDay;

const OP: &str = "add clicks";

const OFFSET: &str = "SELECT next_offset FROM click_offsets WHERE stream = $1 AND partition = $2";
const MOVE: &str = "UPDATE click_offsets SET next_offset = $4 \
     WHERE stream = $1 AND partition = $2 AND next_offset = $3 RETURNING 1";
/// An offset that is absent counts as 0. Two that add it at once meet at its primary key.
const MOVE_FROM_START: &str = "INSERT INTO click_offsets (stream, partition, next_offset) VALUES ($1, $2, $4) \
     ON CONFLICT (stream, partition) DO UPDATE SET next_offset = excluded.next_offset \
     WHERE click_offsets.next_offset = $3 RETURNING 1";

/// Makes the rows that are not there yet, so that there is something to lock.
const ADD_DAYS: &str = "INSERT INTO click_days (kind, number, name, day, counts, visitors) \
     SELECT kind, number, name, day, $5, $6 \
     FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::integer[]) \
     WITH ORDINALITY AS asked (kind, number, name, day, place) ORDER BY place ON CONFLICT DO NOTHING";
const LOCK_DAYS: &str = "SELECT place, counts, visitors \
     FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::integer[]) \
     WITH ORDINALITY AS asked (kind, number, name, day, place) \
     JOIN click_days AS stored USING (kind, number, name, day) ORDER BY place FOR NO KEY UPDATE OF stored";
const WRITE_DAYS: &str = "UPDATE click_days AS stored SET counts = new.counts, visitors = new.visitors \
     FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::integer[], $5::bytea[], $6::bytea[]) \
     AS new (kind, number, name, day, counts, visitors) \
     WHERE (stored.kind, stored.number, stored.name, stored.day) = (new.kind, new.number, new.name, new.day)";

const SET_ASIDE: &str = "INSERT INTO click_days_damaged (kind, number, name, day, counts, visitors) \
     VALUES ($1, $2, $3, $4, $5, $6)";
const DAMAGE: &str =
    "SELECT (extract(epoch FROM min(found_at)) * 1000)::bigint, count(*) FROM click_days_damaged";

pub(super) async fn damage(engine: &Engine) -> PortResult<Option<ClickDamage>> {
    const OP: &str = "ask for damage";
    let rows = engine.read(OP, DAMAGE, &[]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let (since, days): (Option<i64>, i64) = (column(OP, row, 0)?, column(OP, row, 1)?);
    Ok(since.map(|since| ClickDamage {
        since: UnixMillis(since),
        days: days.cast_unsigned(),
        clicks: 0,
    }))
}

pub(super) async fn offset(
    engine: &Engine,
    StreamPartition { stream, number }: StreamPartition,
) -> PortResult<u64> {
    const OP: &str = "read a click offset";
    let values: [Value<'_>; 2] = [&stream.0.cast_signed(), &i64::from(number)];
    let rows = engine.read(OP, OFFSET, &values).await?;
    let offset: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
    Ok(offset.cast_unsigned())
}

pub(super) async fn apply(engine: &Engine, flush: &ClickWindow) -> PortResult<bool> {
    let days = DayColumns::of(&flush.days);
    // Before there is a transaction, which would hold its locks meanwhile.
    let new_blocks = click_blocks::encode(flush.partition, flush.from, &flush.clicks);
    let mut client = engine.client(OP).await?;
    let timeout = statement_timeout(engine.flush_timeout());
    let work = run(&mut client, flush, &days, &new_blocks, &timeout);
    let done = engine.within_flush_timeout(OP, Effect::Unknown, work).await;
    engine.finish(OP, Effect::Unknown, client, done)?
}

/// Lets the engine end a statement by itself before the deadline, so that its clear answer comes first.
fn statement_timeout(deadline: Duration) -> String {
    let timeout = (deadline * 5 / 6).as_millis().max(1);
    format!("SET LOCAL statement_timeout = {timeout}")
}

/// The inner error is ours. A transaction that is dropped is rolled back.
async fn run(
    client: &mut Session,
    flush: &ClickWindow,
    days: &DayColumns<'_>,
    new_blocks: &[NewBlock],
    timeout: &str,
) -> Result<PortResult<bool>, Error> {
    let transaction = client.transaction().await?;
    // The session's own is that of lists and reports.
    transaction.batch_execute(timeout).await?;
    if !move_offset(&transaction, flush).await? {
        transaction.rollback().await?;
        return Ok(Ok(false));
    }
    for block in new_blocks {
        blocks::add(&transaction, block).await?;
    }
    let locked = days.lock(&transaction).await?;
    match days.plus(&locked) {
        Ok(AddedDays { rollups, damaged }) => {
            for (place, stored) in damaged {
                days.set_aside(&transaction, place, &stored).await?;
            }
            days.write(&transaction, &rollups).await?;
            transaction.commit().await?;
            Ok(Ok(true))
        }
        Err(error) => {
            transaction.rollback().await?;
            Ok(Err(error))
        }
    }
}

async fn move_offset(transaction: &Transaction<'_>, flush: &ClickWindow) -> Result<bool, Error> {
    let StreamPartition { stream, number } = flush.partition;
    let sql = match flush.from {
        0 => MOVE_FROM_START,
        _ => MOVE,
    };
    let values: [Value<'_>; 4] = [
        &stream.0.cast_signed(),
        &i64::from(number),
        &flush.from.cast_signed(),
        &flush.to.cast_signed(),
    ];
    Ok(!query(transaction, sql, &values).await?.is_empty())
}

pub(super) async fn query(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, Error> {
    let statement = transaction.prepare_cached(sql).await?;
    transaction.query(&statement, values).await
}

/// What the days of a flush hold from now on, and what those held that cannot be decoded.
struct AddedDays {
    rollups: Vec<StoredDay>,
    damaged: Vec<(usize, StoredDay)>,
}

/// The days of a flush, each once, in the order in which they are locked; by column.
#[derive(Default)]
struct DayColumns<'a> {
    kind: Vec<i16>,
    number: Vec<i64>,
    name: Vec<Cow<'a, str>>,
    day: Vec<i32>,
    /// What is new about each.
    new_days: Vec<Vec<&'a SubjectDay>>,
}

impl<'a> DayColumns<'a> {
    fn of(days: &'a [SubjectDay]) -> Self {
        let mut sorted = BTreeMap::<(Subject<'a>, i32), Vec<&SubjectDay>>::new();
        for new in days {
            let row = (Subject::from(&new.subject), stored_day(new.day));
            sorted.entry(row).or_default().push(new);
        }
        let mut columns = Self::default();
        for ((subject, day), new_days) in sorted.into_iter().rev() {
            columns.kind.push(subject.kind);
            columns.number.push(subject.number);
            columns.name.push(subject.name);
            columns.day.push(day);
            columns.new_days.push(new_days);
        }
        columns
    }

    /// The parameters `$1` to `$4`.
    fn names(&self) -> [Value<'_>; 4] {
        [&self.kind, &self.number, &self.name, &self.day]
    }

    async fn lock(&self, transaction: &Transaction<'_>) -> Result<Vec<Row>, Error> {
        let StoredDay { counts, visitors } = StoredDay::empty();
        let [kind, number, name, day] = self.names();
        let values = [kind, number, name, day, &counts, &visitors];
        query(transaction, ADD_DAYS, &values).await?;
        query(transaction, LOCK_DAYS, &self.names()).await
    }

    /// What each row holds from now on. One that cannot be decoded begins anew.
    fn plus(&self, locked: &[Row]) -> PortResult<AddedDays> {
        if locked.len() != self.new_days.len() {
            let detail =
                "a day was purged in the moment in which it was added to; nothing was changed";
            return Err(PortError::new(ErrorKind::Throttled, BACKEND, OP, detail));
        }
        let mut rollups = Vec::with_capacity(locked.len());
        let mut damaged = Vec::new();
        for (place, (row, new_days)) in locked.iter().zip(&self.new_days).enumerate() {
            let stored = StoredDay {
                counts: column(OP, row, 1)?,
                visitors: column(OP, row, 2)?,
            };
            let sum = match stored.plus(new_days.iter().copied()) {
                Ok(sum) => Ok(sum),
                Err(_) => {
                    damaged.push((place, stored));
                    StoredDay::empty().plus(new_days.iter().copied())
                }
            };
            rollups.push(sum.map_err(|damaged| corrupt(OP, "a day").with_source(damaged))?);
        }
        Ok(AddedDays { rollups, damaged })
    }

    /// Keeps a row that cannot be decoded among the dead letters.
    async fn set_aside(
        &self,
        transaction: &Transaction<'_>,
        place: usize,
        stored: &StoredDay,
    ) -> Result<(), Error> {
        tracing::error!(
            event = names::event::CLICKS_SET_ASIDE,
            backend = BACKEND,
            kind = self.kind[place],
            name = %self.name[place],
            day = self.day[place],
            "counts of a day are damaged"
        );
        let values: [Value<'_>; 6] = [
            &self.kind[place],
            &self.number[place],
            &self.name[place],
            &self.day[place],
            &stored.counts,
            &stored.visitors,
        ];
        query(transaction, SET_ASIDE, &values).await.map(drop)
    }

    async fn write(
        &self,
        transaction: &Transaction<'_>,
        rollups: &[StoredDay],
    ) -> Result<(), Error> {
        let counts: Vec<&[u8]> = rollups.iter().map(|sum| &*sum.counts).collect();
        let visitors: Vec<&[u8]> = rollups.iter().map(|sum| &*sum.visitors).collect();
        let [kind, number, name, day] = self.names();
        let values = [kind, number, name, day, &counts, &visitors];
        query(transaction, WRITE_DAYS, &values).await.map(drop)
    }
}
