//! Sessions with a cluster.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use curt_core::PortResult;
use scylla::client::PoolSize;
use scylla::client::execution_profile::{
    ExecutionProfile, ExecutionProfileBuilder, ExecutionProfileHandle,
};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};

use crate::address::Route;
use crate::failure::of_connecting;
use crate::schema;
use crate::settings::{CassandraSettings, ReplicaConsistency, SerialScope};
use crate::statement::Cql;

/// A session, and the statements that were prepared on it. The driver keeps connections to all nodes, and makes them anew.
pub(crate) struct Connected {
    pub(crate) session: Session,
    pub(crate) prepared: RwLock<HashMap<Cql, PreparedStatement>>,
    /// For statements that nobody but their caller may repeat.
    pub(crate) fallthrough: ExecutionProfileHandle,
}

/// One attempt to connect and to bring the tables up to date.
pub(crate) async fn connect(
    route: Arc<Route>,
    settings: Arc<CassandraSettings>,
) -> PortResult<Arc<Connected>> {
    let session = open_session(&route, &settings).await?;
    schema::migrate(&session, &route, &settings).await?;
    let profile = profile(&settings).retry_policy(Arc::new(FallthroughRetryPolicy::new()));
    Ok(Arc::new(Connected {
        session,
        prepared: RwLock::default(),
        fallthrough: profile.build().into_handle(),
    }))
}

/// A session without anything in it.
pub(crate) async fn open_session(
    route: &Route,
    settings: &CassandraSettings,
) -> PortResult<Session> {
    let mut builder = SessionBuilder::new()
        .known_nodes(&route.hosts)
        .connection_timeout(settings.connect_timeout)
        .pool_size(PoolSize::PerShard(settings.connections))
        .fetch_schema_metadata(false)
        .default_execution_profile_handle(profile(settings).build().into_handle());
    if let Some((user, password)) = &route.account {
        builder = builder.user(user, password);
    }
    if let Some(datacenter) = &route.datacenter {
        builder = builder.prefer_datacenter(datacenter.clone());
    }
    let session = builder.build().await;
    session.map_err(|error| of_connecting(route, error))
}

fn profile(settings: &CassandraSettings) -> ExecutionProfileBuilder {
    ExecutionProfile::builder()
        .consistency(match settings.consistency {
            ReplicaConsistency::LocalQuorum => Consistency::LocalQuorum,
            ReplicaConsistency::Quorum => Consistency::Quorum,
            ReplicaConsistency::All => Consistency::All,
        })
        .serial_consistency(Some(serial_consistency(settings)))
        .request_timeout(Some(settings.background_timeout))
}

pub(crate) fn serial_consistency(settings: &CassandraSettings) -> SerialConsistency {
    match settings.serial {
        SerialScope::All => SerialConsistency::Serial,
        SerialScope::Local => SerialConsistency::LocalSerial,
    }
}
