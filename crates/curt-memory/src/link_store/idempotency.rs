use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use curt_core::limits::IDEMPOTENCY_KEPT;
use curt_core::ports::{
    BeginReply, CreationOutcome, CreationPlan, Idempotency, IdempotencyRecord, IdempotentRequest,
    RequestToken,
};
use curt_core::{ErrorKind, OwnerId, PortError, PortResult, UnixMillis};

use super::MemoryLinkStore;
use crate::{BACKEND, locked};

type Name = (OwnerId, Box<str>);

/// Requests with an idempotency key.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_name: HashMap<Name, IdempotencyRecord>,
    by_age: BTreeSet<(UnixMillis, Name)>,
}

impl Records {
    fn begin(&mut self, request: &IdempotentRequest, plan: &CreationPlan) -> BeginReply {
        let name = name_of(request);
        let is_kept =
            |record: &&IdempotencyRecord| plan.at.since(record.plan.at) <= IDEMPOTENCY_KEPT;
        if let Some(record) = self.by_name.get(&name).filter(is_kept) {
            return record.clone().reply_to(request, plan);
        }
        self.remove(&name);
        self.by_age.insert((plan.at, name.clone()));
        let record = IdempotencyRecord {
            fingerprint: request.fingerprint,
            plan: plan.clone(),
            outcome: None,
        };
        self.by_name.insert(name, record);
        BeginReply::New
    }

    fn find(
        &mut self,
        request: &IdempotentRequest,
        token: RequestToken,
    ) -> Option<&mut IdempotencyRecord> {
        let record = self.by_name.get_mut(&name_of(request));
        record.filter(|record| record.plan.token == token)
    }

    fn remove(&mut self, name: &Name) {
        if let Some(record) = self.by_name.remove(name) {
            self.by_age.remove(&(record.plan.at, name.clone()));
        }
    }
}

#[async_trait]
impl Idempotency for MemoryLinkStore {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<BeginReply> {
        Ok(locked(&self.tables).records.begin(request, plan))
    }

    async fn replace_plan(
        &self,
        request: &IdempotentRequest,
        plan: &CreationPlan,
    ) -> PortResult<CreationPlan> {
        let records = &mut locked(&self.tables).records;
        let record = records.find(request, plan.token).ok_or_else(|| {
            let detail = "the idempotency record is gone";
            PortError::new(ErrorKind::Invalid, BACKEND, "replace a plan", detail)
        })?;
        if record.plan.version + 1 == plan.version {
            record.plan = plan.clone();
        }
        Ok(record.plan.clone())
    }

    async fn finish(
        &self,
        request: &IdempotentRequest,
        token: RequestToken,
        outcome: CreationOutcome,
    ) -> PortResult<CreationOutcome> {
        match locked(&self.tables).records.find(request, token) {
            Some(record) => Ok(record.outcome.get_or_insert(outcome).clone()),
            None => Ok(outcome),
        }
    }

    async fn cancel(&self, request: &IdempotentRequest, token: RequestToken) -> PortResult<bool> {
        let records = &mut locked(&self.tables).records;
        let found = records.find(request, token);
        let is_there = found.is_some_and(|record| record.outcome.is_none());
        if is_there {
            records.remove(&name_of(request));
        }
        Ok(is_there)
    }

    async fn forget_before(&self, before: UnixMillis, limit: usize) -> PortResult<usize> {
        let records = &mut locked(&self.tables).records;
        let old = records.by_age.iter().take_while(|(at, _)| *at < before);
        let old: Vec<Name> = old.take(limit).map(|(_, name)| name.clone()).collect();
        old.iter().for_each(|name| records.remove(name));
        Ok(old.len())
    }
}

fn name_of(request: &IdempotentRequest) -> Name {
    (request.owner, request.key.clone())
}
