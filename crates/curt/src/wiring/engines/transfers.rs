//! Opens databases as sides of a copy.

use std::sync::Arc;

use curt_core::ports::{AccountItem, ClickItem, LinkTransfer, MapNotes, StreamId, Transfer};
use curt_core::{ErrorKind, PortError, PortResult, ShardMap};
use curt_sqlite::Sqlite;

use super::{EngineAddress, EngineKind, Engines, Opened, Part, require};

impl Engines {
    /// A links database, or a node of one, as one side of a copy.
    pub(crate) fn link_transfer(
        &mut self,
        address: &EngineAddress,
        map: Arc<ShardMap>,
    ) -> PortResult<Arc<dyn LinkTransfer>> {
        if address.spreads_by_itself() {
            return Err(uncopied(address));
        }
        match self.engine(Part::Links, address)? {
            Opened::Sqlite(database) => Ok(database.link_transfer(map)),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => Ok(database.link_transfer(map)),
            #[cfg(feature = "cassandra")]
            Opened::Cassandra(cluster) => Ok(cluster.link_transfer()),
            #[cfg(feature = "dynamodb")]
            Opened::DynamoDb(tables) => Ok(tables.link_transfer()),
            _ => Err(uncopied(address)),
        }
    }

    /// An accounts database as one side of a copy.
    pub(crate) fn account_transfer(
        &mut self,
        address: &EngineAddress,
    ) -> PortResult<Arc<dyn Transfer<AccountItem>>> {
        match self.engine(Part::Accounts, address)? {
            Opened::Sqlite(database) => Ok(database.account_transfer()),
            #[cfg(feature = "postgres")]
            Opened::Postgres(database) => Ok(database.account_transfer()),
            #[cfg(feature = "cassandra")]
            Opened::Cassandra(cluster) => Ok(cluster.account_transfer()),
            #[cfg(feature = "dynamodb")]
            Opened::DynamoDb(tables) => Ok(tables.account_transfer()),
            _ => Err(uncopied(address)),
        }
    }

    /// A clicks database as one side of the copy that is called `copy`.
    pub(crate) fn click_transfer(
        &mut self,
        address: &EngineAddress,
        copy: StreamId,
    ) -> PortResult<Arc<dyn Transfer<ClickItem>>> {
        require(Part::Clicks, address)?;
        match address.kind() {
            EngineKind::Sqlite => {
                let database = Sqlite::open_clicks(address.path(), self.sqlite_settings())?;
                let clicks = database.click_transfer(copy);
                self.opened
                    .push((address.clone(), Opened::Sqlite(database)));
                Ok(clicks)
            }
            #[cfg(feature = "postgres")]
            EngineKind::Postgres => match self.engine(Part::Clicks, address)? {
                Opened::Postgres(database) => Ok(database.click_transfer(copy)),
                _ => Err(uncopied(address)),
            },
            #[cfg(feature = "cassandra")]
            EngineKind::Cassandra => match self.engine(Part::Clicks, address)? {
                Opened::Cassandra(cluster) => Ok(cluster.click_transfer(copy)),
                _ => Err(uncopied(address)),
            },
            #[cfg(feature = "dynamodb")]
            EngineKind::DynamoDb => match self.engine(Part::Clicks, address)? {
                Opened::DynamoDb(tables) => Ok(tables.click_transfer(copy)),
                _ => Err(uncopied(address)),
            },
            _ => Err(uncopied(address)),
        }
    }

    /// Where a copy to a links database notes how far it has come.
    pub(crate) fn notes(&mut self, address: &EngineAddress) -> PortResult<Arc<dyn MapNotes>> {
        #[cfg(feature = "cassandra")]
        if let Opened::Cassandra(cluster) = self.engine(Part::Links, address)? {
            return Ok(cluster.notes());
        }
        #[cfg(feature = "dynamodb")]
        if let Opened::DynamoDb(tables) = self.engine(Part::Links, address)? {
            return Ok(tables.notes());
        }
        Ok(self.shard_maps(address)?)
    }
}

/// Not every engine that serves a part can be copied.
fn uncopied(address: &EngineAddress) -> PortError {
    let detail = format!(
        "{address} cannot be copied: use sqlite:PATH, postgres://…, cassandra://… or dynamodb://…"
    );
    PortError::new(ErrorKind::Invalid, "curt", "open a store", detail)
}
