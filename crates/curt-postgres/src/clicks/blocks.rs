//! Blocks of single clicks.

use async_trait::async_trait;
use curt_adapter_kit::click_blocks::{BlockEntry, BlockList, BlockPlace, BlockRange, ClickBlocks};
use curt_core::PortResult;
use curt_core::click_block::NewBlock;
use deadpool_postgres::Transaction;
use tokio_postgres::{Error, Row};

use super::PostgresClicks;
use super::apply::query;
use super::damage::{self, Damaged};
use crate::decode::{corrupt, rows_max, time};
use crate::engine::{Value, column};
use crate::failure::BACKEND;

const ADD: &str = "INSERT INTO click_blocks (first_at, last_at, clicks, bytes, subjects, content) \
     VALUES ($1, $2, $3, $4, $5, $6)";
const LIST: &str = include_str!("sql/list_blocks.sql");
const OLDEST: &str = "SELECT NULL, id, first_at, last_at, clicks, bytes FROM click_blocks ORDER BY first_at, id LIMIT $1";
const SMALL: &str = "SELECT NULL, id, first_at, last_at, clicks, bytes FROM click_blocks WHERE clicks < 4096 \
     AND NOT EXISTS (SELECT 1 FROM click_damage AS d WHERE d.kind = 1 AND d.id = click_blocks.id) \
     ORDER BY id DESC LIMIT $1";
const READ: &str = "SELECT id, content FROM click_blocks WHERE id = ANY($1)";
const BYTES: &str = "SELECT coalesce(sum(bytes), 0)::bigint FROM click_blocks";
const REPLACE: &str = include_str!("sql/replace_blocks.sql");

pub(super) async fn add(transaction: &Transaction<'_>, block: &NewBlock) -> Result<(), Error> {
    let values: [Value<'_>; 6] = [
        &block.first_at.0,
        &block.last_at.0,
        &i64::from(block.clicks),
        &i64::from(block.size()),
        &block.subjects,
        &block.bytes,
    ];
    query(transaction, ADD, &values).await.map(drop)
}

#[async_trait]
impl ClickBlocks for PostgresClicks {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn list(
        &self,
        range: BlockRange,
        after: BlockPlace,
        limit: usize,
    ) -> PortResult<BlockList> {
        const OP: &str = "list blocks of clicks";
        let values: [Value<'_>; 5] = [
            &range.from.0,
            &range.before.0,
            &after.last_at.0,
            &after.id,
            &rows_max(limit),
        ];
        let rows = self.tables.engine().await?.read(OP, LIST, &values).await?;
        let mut listed = BlockList {
            blocks: Vec::with_capacity(rows.len()),
            version: 0,
        };
        for row in &rows {
            listed.version = column(OP, row, 0)?;
            // Without any block there is one row with the moves alone.
            if column::<Option<i64>>(OP, row, 1)?.is_some() {
                listed.blocks.push(BlockEntry {
                    subjects: column(OP, row, 6)?,
                    ..entry(OP, row)?
                });
            }
        }
        Ok(listed)
    }

    async fn list_oldest(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        self.entries("list the oldest blocks of clicks", OLDEST, limit)
            .await
    }

    async fn list_small(&self, limit: usize) -> PortResult<Vec<BlockEntry>> {
        self.entries("list small blocks of clicks", SMALL, limit)
            .await
    }

    async fn read(&self, ids: &[i64]) -> PortResult<Vec<(i64, Vec<u8>)>> {
        const OP: &str = "read blocks of clicks";
        let rows = self.tables.engine().await?.read(OP, READ, &[&ids]).await?;
        let block = |row: &Row| Ok((column(OP, row, 0)?, column(OP, row, 1)?));
        rows.iter().map(block).collect()
    }

    async fn sum_bytes(&self) -> PortResult<u64> {
        const OP: &str = "measure clicks";
        let rows = self.tables.engine().await?.read(OP, BYTES, &[]).await?;
        let bytes: i64 = rows.first().map_or(Ok(0), |row| column(OP, row, 0))?;
        Ok(bytes.cast_unsigned())
    }

    async fn replace(&self, old: &[i64], new: Vec<NewBlock>) -> PortResult<bool> {
        const OP: &str = "replace blocks of clicks";
        let numbers = |of: fn(&NewBlock) -> i64| new.iter().map(of).collect::<Vec<_>>();
        let bytes = |of: fn(&NewBlock) -> &[u8]| new.iter().map(of).collect::<Vec<_>>();
        let values: [Value<'_>; 7] = [
            &old,
            &numbers(|block| block.first_at.0),
            &numbers(|block| block.last_at.0),
            &numbers(|block| block.clicks.into()),
            &numbers(|block| block.size().into()),
            &bytes(|block| &block.subjects),
            &bytes(|block| &block.bytes),
        ];
        let engine = self.tables.engine().await?;
        let rows = engine.write(OP, REPLACE, &values).await?;
        rows.first().map_or(Ok(false), |row| column(OP, row, 0))
    }

    async fn set_aside(&self, id: i64) -> PortResult<()> {
        damage::set_aside(self.tables.engine().await?, Damaged::Block, id).await
    }
}

impl PostgresClicks {
    async fn entries(
        &self,
        op: &'static str,
        sql: &str,
        limit: usize,
    ) -> PortResult<Vec<BlockEntry>> {
        let engine = self.tables.engine().await?;
        let rows = engine.read(op, sql, &[&rows_max(limit)]).await?;
        rows.iter().map(|row| entry(op, row)).collect()
    }
}

fn entry(op: &'static str, row: &Row) -> PortResult<BlockEntry> {
    let count = |index| {
        let count: i64 = column(op, row, index)?;
        u32::try_from(count).map_err(|_| corrupt(op, count))
    };
    Ok(BlockEntry {
        id: column(op, row, 1)?,
        first_at: time(op, row, 2)?,
        last_at: time(op, row, 3)?,
        clicks: count(4)?,
        bytes: count(5)?,
        subjects: Vec::new(),
    })
}
