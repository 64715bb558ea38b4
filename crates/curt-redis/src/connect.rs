use std::sync::Arc;

use curt_core::{ErrorKind, PortError, PortResult};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, FromRedisValue, RedisResult, Value};

use super::address::{Route, SERVER_PORT, To};
use super::{BACKEND, RedisSettings, failure, sentinel};

pub(super) const OP: &str = "connect";

/// One attempt to reach the primary.
pub(super) async fn connect(
    route: Arc<Route>,
    settings: RedisSettings,
) -> PortResult<MultiplexedConnection> {
    match &route.to {
        To::Server(host) => {
            let client = route.client(&host.name, host.port_or(SERVER_PORT), &route.server)?;
            open(&client, settings).await
        }
        To::Primary { name, .. } => {
            let (host, port) = sentinel::find_primary(&route, settings).await?;
            let client = route.client(&host, port, &route.server)?;
            let mut connection = open(&client, settings).await?;
            check_role(&mut connection, name).await?;
            Ok(connection)
        }
    }
}

/// Connects, and asks for a sign of life: the system accepts connections for a server that hangs, too.
pub(super) async fn open(
    client: &Client,
    settings: RedisSettings,
) -> PortResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(settings.connect_timeout))
        .set_response_timeout(Some(settings.connect_timeout));
    let opened = client.get_multiplexed_async_connection_with_config(&config);
    let mut connection = opened.await.map_err(failure::of_connecting)?;
    let alive: RedisResult<()> = redis::cmd("PING").query_async(&mut connection).await;
    alive.map_err(failure::of_connecting)?;
    connection.set_response_timeout(settings.command_timeout);
    Ok(connection)
}

/// The Sentinels may not have heard yet that their primary was demoted.
async fn check_role(connection: &mut MultiplexedConnection, name: &str) -> PortResult<()> {
    let role: RedisResult<Vec<Value>> = redis::cmd("ROLE").query_async(connection).await;
    let role = role.map_err(failure::of_connecting)?;
    let is_primary = role
        .first()
        .and_then(|role| String::from_redis_value_ref(role).ok())
        .is_some_and(|role| role == "master");
    if is_primary {
        Ok(())
    } else {
        let detail = format!(
            "the server that the Sentinels call {name:?} is not a primary: a fail-over is under way"
        );
        Err(PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail))
    }
}
