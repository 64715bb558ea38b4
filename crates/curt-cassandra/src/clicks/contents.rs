//! Values that are written once.

use curt_adapter_kit::Effect;
use curt_core::{Clock, PortResult, SystemClock};

use super::CassandraClicks;
use crate::statement::Cql;
use crate::together::together;

const PUT: Cql = Cql::write(
    "INSERT INTO KEYSPACE.click_contents (namespace, id, day, content, subjects) VALUES (?, ?, ?, ?, ?)",
);
const GET: Cql =
    Cql::read("SELECT content FROM KEYSPACE.click_contents WHERE namespace = ? AND id = ?");
const GET_SUBJECTS: Cql =
    Cql::read("SELECT subjects FROM KEYSPACE.click_contents WHERE namespace = ? AND id = ?");
const GET_DAY: Cql =
    Cql::read("SELECT day FROM KEYSPACE.click_contents WHERE namespace = ? AND id = ?");
const DELETE: Cql =
    Cql::write("DELETE FROM KEYSPACE.click_contents WHERE namespace = ? AND id = ?");

/// A value to be written.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) id: i64,
    /// Of a run: where its catalogue is.
    pub(super) day: Option<i32>,
    pub(super) content: Option<&'a [u8]>,
    pub(super) subjects: Option<&'a [u8]>,
}

/// An id that grows with time and that no other process makes: microseconds, and some luck.
pub(super) fn new_id() -> i64 {
    const RANDOM_BITS: u32 = 10;
    let micros = SystemClock.now().0.saturating_mul(1_000);
    let within = rand::random_range(0..1_000_i64);
    let luck = i64::from(rand::random_range(0..1_u32 << RANDOM_BITS));
    ((micros + within) << RANDOM_BITS) | luck
}

impl CassandraClicks {
    pub(super) async fn put_contents(
        &self,
        op: &'static str,
        contents: Vec<Content<'_>>,
    ) -> PortResult<()> {
        let puts = contents.into_iter().map(|one| async move {
            let values = (&*self.namespace, one.id, one.day, one.content, one.subjects);
            // Nothing finds it yet.
            self.engine.write(op, Effect::None, PUT, values).await
        });
        together(puts).await.map(drop)
    }

    pub(super) async fn get_content(
        &self,
        op: &'static str,
        id: i64,
    ) -> PortResult<Option<Vec<u8>>> {
        let row: Option<(Option<Vec<u8>>,)> =
            self.engine.first(op, GET, (&*self.namespace, id)).await?;
        Ok(row.and_then(|(content,)| content))
    }

    pub(super) async fn get_subjects(
        &self,
        op: &'static str,
        id: i64,
    ) -> PortResult<Option<Vec<u8>>> {
        let values = (&*self.namespace, id);
        let row: Option<(Option<Vec<u8>>,)> = self.engine.first(op, GET_SUBJECTS, values).await?;
        Ok(row.and_then(|(subjects,)| subjects))
    }

    /// The day of a run.
    pub(super) async fn get_day(&self, op: &'static str, run: i64) -> PortResult<Option<i32>> {
        let values = (&*self.namespace, run);
        let row: Option<(Option<i32>,)> = self.engine.first(op, GET_DAY, values).await?;
        Ok(row.and_then(|(day,)| day))
    }

    /// Removes values that nothing names any more. What is left of them when this fails takes room and nothing else.
    pub(super) async fn delete_contents(&self, op: &'static str, ids: Vec<i64>) {
        let deletes = ids.into_iter().map(|id| async move {
            let values = (&*self.namespace, id);
            self.engine.write(op, Effect::None, DELETE, values).await
        });
        together(deletes).await.ok();
    }
}
