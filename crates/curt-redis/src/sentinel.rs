//! Asking the Sentinels for the primary.
//!
//! All are asked at once. A Sentinel that was cut off from the others goes on naming the old primary, so that the
//! first answer is not good enough: a majority is waited for, and the youngest decision among their answers counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use curt_core::{ErrorKind, PortError, PortResult};
use tokio::task::JoinSet;

use super::address::{Route, SENTINEL_PORT, To};
use super::connect::{OP, open};
use super::{BACKEND, RedisSettings, failure};
use curt_adapter_kit::address::Host;

/// What a Sentinel says about the primary.
struct Answer {
    host: String,
    port: u16,
    /// Grows with every fail-over.
    epoch: u64,
}

/// Where the primary is.
pub(super) async fn find_primary(
    route: &Arc<Route>,
    settings: RedisSettings,
) -> PortResult<(String, u16)> {
    let To::Primary { sentinels, .. } = &route.to else {
        return Err(unavailable("the address names no Sentinels".into()));
    };
    let mut asked = JoinSet::new();
    for sentinel in sentinels {
        asked.spawn(ask_in_time(Arc::clone(route), sentinel.clone(), settings));
    }
    let majority = sentinels.len() / 2 + 1;
    let mut answers = Vec::new();
    let mut refusal = None;
    while answers.len() < majority
        && let Some(answer) = asked.join_next().await
    {
        match answer {
            Ok(Ok(answer)) => answers.push(answer),
            Ok(Err(error)) => refusal = Some(error),
            Err(panic) => refusal = Some(unavailable(panic.to_string())),
        }
    }
    match answers.into_iter().max_by_key(|answer| answer.epoch) {
        Some(Answer { host, port, .. }) => Ok((host, port)),
        None => Err(refusal.unwrap_or_else(|| unavailable("no Sentinel was asked".into()))),
    }
}

async fn ask_in_time(
    route: Arc<Route>,
    sentinel: Host,
    settings: RedisSettings,
) -> PortResult<Answer> {
    let timeout: Duration = settings.connect_timeout;
    let name = sentinel.with_port(SENTINEL_PORT);
    match tokio::time::timeout(timeout, ask(&route, &sentinel, settings)).await {
        Ok(answer) => answer,
        Err(_) => Err(unavailable(format!(
            "the Sentinel {name} did not answer in time"
        ))),
    }
}

async fn ask(route: &Route, sentinel: &Host, settings: RedisSettings) -> PortResult<Answer> {
    let To::Primary { name, account, .. } = &route.to else {
        return Err(unavailable("the address names no Sentinels".into()));
    };
    let client = route.client(&sentinel.name, sentinel.port_or(SENTINEL_PORT), account)?;
    let mut connection = open(&client, settings).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("MASTER").arg(name);
    let answer: HashMap<String, String> = command
        .query_async(&mut connection)
        .await
        .map_err(failure::of_connecting)?;
    read(&answer).ok_or_else(|| unavailable(format!("a Sentinel does not say where {name:?} is")))
}

fn read(answer: &HashMap<String, String>) -> Option<Answer> {
    Some(Answer {
        host: answer.get("ip")?.clone(),
        port: answer.get("port")?.parse().ok()?,
        epoch: answer.get("config-epoch")?.parse().ok()?,
    })
}

fn unavailable(detail: String) -> PortError {
    PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail)
}
