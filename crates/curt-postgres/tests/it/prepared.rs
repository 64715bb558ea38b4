//! Databases that have their tables already.

use std::sync::Arc;

use curt_postgres::{MigrationSet, Postgres};
use curt_testkit::engines::postgres::{Database, Server};

use crate::links::world::settings;

pub(crate) fn prepared<const N: usize>(
    server: &Arc<Server>,
    set: &'static MigrationSet,
) -> [Database; N] {
    let make_tables = async |url: String| {
        Postgres::open(&url, &settings())?.migrate(set).await?;
        Ok(())
    };
    server.copies(set.name, make_tables).unwrap()
}
