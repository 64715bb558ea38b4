use async_trait::async_trait;
use curt_adapter_kit::wide_column::clicks::SaltRows;
use curt_adapter_kit::wide_column::{Decided, ReadMode};
use curt_core::ports::Salt;
use curt_core::{Day, PortResult};

use super::CassandraClicks;
use crate::failure::corrupt;
use crate::statement::Cql;

const GET: Cql = Cql::read("SELECT salt FROM KEYSPACE.click_salts WHERE namespace = ? AND day = ?");
const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.click_salts (namespace, day, salt) VALUES (?, ?, ?) IF NOT EXISTS",
);
const DELETE: Cql =
    Cql::conditional("DELETE FROM KEYSPACE.click_salts WHERE namespace = ? AND day = ? IF EXISTS");

#[async_trait]
impl SaltRows for CassandraClicks {
    async fn get_salt(
        &self,
        op: &'static str,
        day: Day,
        mode: ReadMode,
    ) -> PortResult<Option<Salt>> {
        let values = (&*self.namespace, day.number().cast_signed());
        let row: Option<(Vec<u8>,)> = self.engine.first(op, GET.at(mode), values).await?;
        let salt = row.map(|(salt,)| salt.try_into());
        salt.transpose().map_err(|_| corrupt(op, "a salt"))
    }

    async fn insert_salt(&self, op: &'static str, day: Day, salt: &Salt) -> PortResult<Decided> {
        let values = (&*self.namespace, day.number().cast_signed(), &salt[..]);
        self.engine.decide(op, INSERT, values).await
    }

    async fn delete_salt(&self, op: &'static str, day: Day) -> PortResult<Decided> {
        let values = (&*self.namespace, day.number().cast_signed());
        self.engine.decide(op, DELETE, values).await
    }
}
