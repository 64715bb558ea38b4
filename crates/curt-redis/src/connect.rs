use std::sync::Arc;

use curt_core::{ErrorKind, PortError, PortResult};
use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Client, FromRedisValue, ProtocolVersion, RedisConnectionInfo,
    RedisResult, Value,
};

use super::address::{Route, SERVER_PORT, To};
use super::{BACKEND, RedisSettings, failure, sentinel};

pub(super) const OP: &str = "connect";

/// Host and port of a server.
pub(super) type Place = (String, u16);

/// Where the server is, or the primary that the Sentinels name.
pub(super) async fn find(route: &Arc<Route>, settings: RedisSettings) -> PortResult<Place> {
    match &route.to {
        To::Server(host) => Ok((host.name.clone(), host.port_or(SERVER_PORT))),
        To::Primary { .. } => sentinel::find_primary(route, settings).await,
    }
}

/// One attempt to reach the primary.
pub(super) async fn connect(
    route: Arc<Route>,
    settings: RedisSettings,
) -> PortResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new();
    let (connection, _) = open_primary(&route, settings, config, &route.server).await?;
    Ok(connection)
}

/// The same for a connection that the server may tell something unasked, which `receive` gets.
pub(super) async fn connect_pushing(
    route: &Arc<Route>,
    settings: RedisSettings,
    receive: impl AsyncPushSender,
) -> PortResult<(MultiplexedConnection, Place)> {
    let config = AsyncConnectionConfig::new().set_push_sender(receive);
    let account = route.server.clone().set_protocol(ProtocolVersion::RESP3);
    open_primary(route, settings, config, &account).await
}

async fn open_primary(
    route: &Arc<Route>,
    settings: RedisSettings,
    config: AsyncConnectionConfig,
    account: &RedisConnectionInfo,
) -> PortResult<(MultiplexedConnection, Place)> {
    let place = find(route, settings).await?;
    let client = route.client(&place.0, place.1, account)?;
    let mut connection = open_with(&client, settings, config).await?;
    if let To::Primary { name, .. } = &route.to {
        check_role(&mut connection, name).await?;
    }
    Ok((connection, place))
}

pub(super) async fn open(
    client: &Client,
    settings: RedisSettings,
) -> PortResult<MultiplexedConnection> {
    open_with(client, settings, AsyncConnectionConfig::new()).await
}

/// Connects, and asks for a sign of life: the system accepts connections for a server that hangs, too.
async fn open_with(
    client: &Client,
    settings: RedisSettings,
    config: AsyncConnectionConfig,
) -> PortResult<MultiplexedConnection> {
    let config = config
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
