//! The rows of accounts, a file for each part. When they are written: [`curt_adapter_kit::wide_column::accounts`].

mod api_keys;
mod audit;
mod invites;
mod permissions;
mod sessions;
mod user_record;
mod users;

use std::sync::Arc;
use std::time::Duration;

use curt_adapter_kit::wide_column::Mark;
use curt_core::UnixMillis;
use curt_core::ports::QuotaRule;

use crate::engine::Engine;

/// Rows that one statement of a scan reads, each of which is then looked up.
const SCANNED_AT_ONCE: i32 = 1_000;

pub(crate) struct CassandraAccounts {
    engine: Arc<Engine>,
    namespace: Arc<str>,
}

impl CassandraAccounts {
    pub(crate) fn new(engine: Arc<Engine>, namespace: Arc<str>) -> Self {
        Self { engine, namespace }
    }
}

fn mark_of(bytes: Vec<u8>) -> Option<Mark> {
    bytes.try_into().ok().map(Mark)
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
