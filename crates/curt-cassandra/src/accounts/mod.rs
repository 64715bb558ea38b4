//! Accounts, a file for each part of the port.
//!
//! Users, sessions, invitations and audit entries are partitions of their own; permissions lie together per link, and the
//! API keys of an installation in one partition, because what may be done to one depends on others. Each is changed by
//! lightweight transactions. Nothing that was revoked, ended or removed is deleted: it has a state, so that a replica that
//! missed the change cannot bring it back.

mod api_keys;
mod audit;
mod copies;
mod invites;
mod permissions;
mod removal;
mod sessions;
mod user_record;
mod users;

use std::sync::Arc;

use curt_core::ports::QuotaRule;
use curt_core::{OwnerId, UnixMillis};
use std::time::Duration;
use tokio::sync::Mutex;

use crate::engine::Engine;
use crate::ordered::{OrderedLists, POSITION_BYTES_MAX, Place, Span};

pub(crate) struct CassandraAccounts {
    engine: Arc<Engine>,
    namespace: Arc<str>,
    lists: OrderedLists,
    /// Changes of users from one process wait for each other, and so do those of API keys: transactions on one partition
    /// hinder each other.
    user_turn: Mutex<()>,
    key_turn: Mutex<()>,
    permission_turn: Mutex<()>,
    last_number: Mutex<i64>,
}

impl CassandraAccounts {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self {
            lists: OrderedLists::new(Arc::clone(&engine), Arc::clone(&namespace)),
            user_turn: Mutex::default(),
            key_turn: Mutex::default(),
            permission_turn: Mutex::default(),
            last_number: Mutex::new(0),
            engine,
            namespace,
        }
    }
}

/// The place of a user in a list by id.
fn user_place(list: &str, id: OwnerId) -> Place {
    Place {
        list: list.to_owned(),
        bucket: (id.0 >> 48).to_be_bytes().to_vec(),
        position: id.0.to_be_bytes().to_vec(),
    }
}

/// The part of such a list that follows a user.
fn users_after(list: &str, after: Option<OwnerId>) -> Span {
    let mut span = Span {
        list: list.to_owned(),
        buckets: (Vec::new(), vec![u8::MAX; POSITION_BYTES_MAX]),
        positions: (Vec::new(), vec![u8::MAX; POSITION_BYTES_MAX]),
        is_rising: true,
    };
    if let Some(after) = after {
        span.follow(&user_place(list, after));
    }
    span
}

fn user_at(position: &[u8]) -> Option<OwnerId> {
    let bytes = position.try_into().ok()?;
    Some(OwnerId(u64::from_be_bytes(bytes)))
}

/// A limit as two columns.
fn rule_columns(rule: Option<QuotaRule>) -> (Option<i64>, Option<i64>) {
    let millis = |rule: QuotaRule| i64::try_from(rule.period.as_millis()).unwrap_or(i64::MAX);
    let amount = rule.map(|rule| rule.amount.cast_signed());
    (amount, rule.map(millis))
}

fn rule_of(amount: Option<i64>, period: Option<i64>) -> Option<QuotaRule> {
    Some(QuotaRule {
        amount: amount?.cast_unsigned(),
        period: Duration::from_millis(period?.cast_unsigned()),
    })
}

fn millis(at: Option<UnixMillis>) -> Option<i64> {
    at.map(|at| at.0)
}
