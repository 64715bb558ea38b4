//! Values that are written once.

use async_trait::async_trait;
use curt_adapter_kit::Effect;
use curt_adapter_kit::wide_column::clicks::{Content, ContentRows};
use curt_adapter_kit::wide_column::together;
use curt_core::PortResult;

use super::CassandraClicks;
use crate::statement::Cql;

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

#[async_trait]
impl ContentRows for CassandraClicks {
    async fn put_contents(&self, op: &'static str, contents: Vec<Content<'_>>) -> PortResult<()> {
        let puts = contents.into_iter().map(|one| async move {
            let values = (&*self.namespace, one.id, one.day, one.content, one.subjects);
            // Nothing finds it yet.
            self.engine.write(op, Effect::None, PUT, values).await
        });
        together(puts).await.map(drop)
    }

    async fn get_content(&self, op: &'static str, id: i64) -> PortResult<Option<Vec<u8>>> {
        let values = (&*self.namespace, id);
        let row: Option<(Option<Vec<u8>>,)> = self.engine.first(op, GET, values).await?;
        Ok(row.and_then(|(content,)| content))
    }

    async fn get_subjects(&self, op: &'static str, id: i64) -> PortResult<Option<Vec<u8>>> {
        let values = (&*self.namespace, id);
        let row: Option<(Option<Vec<u8>>,)> = self.engine.first(op, GET_SUBJECTS, values).await?;
        Ok(row.and_then(|(subjects,)| subjects))
    }

    async fn get_day(&self, op: &'static str, run: i64) -> PortResult<Option<i32>> {
        let values = (&*self.namespace, run);
        let row: Option<(Option<i32>,)> = self.engine.first(op, GET_DAY, values).await?;
        Ok(row.and_then(|(day,)| day))
    }

    async fn delete_content(&self, op: &'static str, id: i64) -> PortResult<()> {
        let values = (&*self.namespace, id);
        self.engine.write(op, Effect::None, DELETE, values).await
    }
}
