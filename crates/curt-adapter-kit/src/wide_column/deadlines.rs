use std::sync::Arc;
use std::time::Duration;

use curt_core::{PortError, PortResult};

use crate::Effect;

/// How long the calls of a store may take, and what its errors name.
#[derive(Clone, Debug)]
pub struct Deadlines {
    /// The name of the engine.
    pub backend: &'static str,
    /// Where it is, without anything secret.
    pub address: Arc<str>,
    /// Longest time of a call that a request waits for.
    pub call: Duration,
    /// Longest time of lists, counts and upkeep.
    pub background: Duration,
}

impl Deadlines {
    /// Runs a whole call within `limit`. What breaks off there has `effect`.
    pub async fn within<T>(
        &self,
        op: &'static str,
        limit: Duration,
        effect: Effect,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        let answer = tokio::time::timeout(limit, call).await;
        answer.unwrap_or_else(|_| {
            let (kind, detail) = effect.of_breaking_off(&self.address);
            Err(PortError::new(kind, self.backend, op, detail))
        })
    }

    /// A look-up that a request waits for.
    pub async fn look_up<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        self.within(op, self.call, Effect::None, call).await
    }

    /// A read of many rows.
    pub async fn list<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        self.within(op, self.background, Effect::None, call).await
    }

    /// A write that a request waits for.
    pub async fn change<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        self.within(op, self.call, Effect::Unknown, call).await
    }

    /// A write to many partitions.
    pub async fn change_much<T>(
        &self,
        op: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        let limit = self.background;
        self.within(op, limit, Effect::Unknown, call).await
    }
}
