//! Reads of whole tables, in the order of the hash that places partitions.

use curt_adapter_kit::wide_column::ScanPart;
use curt_core::{ErrorKind, PortError, PortResult};
use scylla::deserialize::row::DeserializeRow;

use crate::engine::Engine;
use crate::failure::BACKEND;
use crate::statement::Cql;

/// A row of a scan. The statement takes a hash that rows are behind, one that they are not behind, and a limit.
pub(crate) trait HashedRow:
    for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>
{
    fn hash(&self) -> i64;

    fn namespace(&self) -> &str;
}

impl Engine {
    /// Rows of a namespace behind `after`: of `limit` rows, those that are its own.
    pub(crate) async fn scan<Row: HashedRow>(
        &self,
        op: &'static str,
        cql: Cql,
        namespace: &str,
        after: Option<&str>,
        limit: i32,
    ) -> PortResult<ScanPart<Row>> {
        let after = after.map_or(Ok(i64::MIN), str::parse);
        let after = after.map_err(|_| {
            let detail = "the position is not one of this database";
            PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
        })?;
        let mut rows: Vec<Row> = self.rows(op, cql, (after, i64::MAX, limit)).await?;
        let is_full = rows.len() == limit.unsigned_abs() as usize;
        let last = rows.last().filter(|_| is_full);
        let next = last.map(|row| row.hash().to_string().into());
        rows.retain(|row| row.namespace() == namespace);
        Ok(ScanPart { rows, next })
    }
}
