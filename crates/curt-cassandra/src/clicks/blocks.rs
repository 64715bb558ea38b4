//! The catalogue of blocks of single clicks.

use async_trait::async_trait;
use curt_adapter_kit::click_blocks::BlockPlace;
use curt_adapter_kit::wide_column::Decided;
use curt_adapter_kit::wide_column::clicks::{BlockRow, ClickBlockRows, StoredBlock};
use curt_core::{PortResult, UnixMillis};
use scylla::DeserializeRow;
use scylla::value::CqlValue;

use super::CassandraClicks;
use crate::statement::Cql;

const MOVES: Cql = Cql::read(
    "SELECT moves FROM KEYSPACE.click_blocks WHERE namespace = ? AND list = 'all' LIMIT 1",
);
const LIST: Cql = Cql::read(
    "SELECT moves, last_at, id, first_at, clicks, bytes, gone FROM KEYSPACE.click_blocks \
     WHERE namespace = ? AND list = 'all' AND (last_at, id) < (?, ?) AND (last_at) >= (?) LIMIT ?",
);
const GET: Cql = Cql::read(
    "SELECT moves, last_at, id, first_at, clicks, bytes, gone FROM KEYSPACE.click_blocks \
     WHERE namespace = ? AND list = 'all' AND last_at = ? AND id = ?",
);
const SUM: Cql = Cql::read(
    "SELECT sum(bytes) AS bytes FROM KEYSPACE.click_blocks WHERE namespace = ? AND list = 'all'",
);
const ENTER: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.click_blocks (namespace, list, last_at, id, first_at, clicks, bytes, gone) \
     VALUES (?, 'all', ?, ?, ?, ?, ?, false) IF NOT EXISTS",
);
const COUNT_MOVE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_blocks SET moves = ? WHERE namespace = ? AND list = 'all' IF moves = ?",
);
const REMOVE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.click_blocks SET gone = true, bytes = 0 \
     WHERE namespace = ? AND list = 'all' AND last_at = ? AND id = ? IF gone = false",
);

#[derive(Clone, Debug, DeserializeRow)]
struct CatalogueRow {
    moves: Option<i64>,
    last_at: i64,
    id: i64,
    first_at: Option<i64>,
    clicks: Option<i64>,
    bytes: Option<i64>,
    gone: Option<bool>,
}

impl CatalogueRow {
    fn into_stored(self) -> StoredBlock {
        StoredBlock {
            is_gone: self.gone != Some(false),
            row: BlockRow {
                id: self.id,
                first_at: UnixMillis(self.first_at.unwrap_or(self.last_at)),
                last_at: UnixMillis(self.last_at),
                clicks: self.clicks.unwrap_or(-1),
                bytes: self.bytes.unwrap_or(-1),
            },
        }
    }
}

#[async_trait]
impl ClickBlockRows for CassandraClicks {
    async fn list_rows(
        &self,
        op: &'static str,
        after: BlockPlace,
        from: UnixMillis,
        limit: usize,
    ) -> PortResult<(i64, Vec<StoredBlock>)> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let values = (&*self.namespace, after.last_at.0, after.id, from.0, limit);
        let rows: Vec<CatalogueRow> = self.engine.rows(op, LIST, values).await?;
        let moves = match rows.first() {
            Some(row) => row.moves,
            None => {
                let values = (&*self.namespace,);
                let row: Option<(Option<i64>,)> = self.engine.first(op, MOVES, values).await?;
                row.and_then(|(moves,)| moves)
            }
        };
        let rows = rows.into_iter().map(CatalogueRow::into_stored).collect();
        Ok((moves.unwrap_or(0), rows))
    }

    async fn get_row(
        &self,
        op: &'static str,
        place: BlockPlace,
    ) -> PortResult<Option<StoredBlock>> {
        let values = (&*self.namespace, place.last_at.0, place.id);
        let row: Option<CatalogueRow> = self.engine.first(op, GET, values).await?;
        Ok(row.map(CatalogueRow::into_stored))
    }

    async fn sum_block_bytes(&self, op: &'static str) -> PortResult<u64> {
        let values = (&*self.namespace,);
        let sum: Option<(Option<i64>,)> = self.engine.first(op, SUM, values).await?;
        Ok(sum.and_then(|(sum,)| sum).unwrap_or(0).cast_unsigned())
    }

    async fn insert_block(&self, op: &'static str, block: &BlockRow) -> PortResult<Decided> {
        let values = (
            &*self.namespace,
            block.last_at.0,
            block.id,
            block.first_at.0,
            block.clicks,
            block.bytes,
        );
        self.engine.decide(op, ENTER, values).await
    }

    async fn replace_blocks(
        &self,
        op: &'static str,
        moves: i64,
        old: &[BlockRow],
        new: &[BlockRow],
    ) -> PortResult<Decided> {
        let namespace = || Some(CqlValue::Text((&*self.namespace).into()));
        let number = |number: i64| Some(CqlValue::BigInt(number));
        // What never was replaced has no number yet.
        let seen = (moves > 0).then_some(CqlValue::BigInt(moves));
        let count = vec![number(moves + 1), namespace(), seen];
        let remove = |row: &BlockRow| {
            let values = vec![namespace(), number(row.last_at.0), number(row.id)];
            (REMOVE, values)
        };
        let enter = |row: &BlockRow| {
            let values = vec![
                namespace(),
                number(row.last_at.0),
                number(row.id),
                number(row.first_at.0),
                number(row.clicks),
                number(row.bytes),
            ];
            (ENTER, values)
        };
        let mut statements = vec![(COUNT_MOVE, count)];
        statements.extend(old.iter().map(remove));
        statements.extend(new.iter().map(enter));
        self.engine.decide_all(op, statements).await
    }
}
