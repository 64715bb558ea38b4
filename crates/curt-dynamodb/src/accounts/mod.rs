//! The items of accounts, a file for each part. When they are written: [`curt_adapter_kit::wide_column::accounts`].

mod api_keys;
mod audit;
mod invites;
mod permissions;
mod sessions;
mod users;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use curt_core::account::Allowance;
use curt_core::ports::QuotaRule;
use curt_core::{PortResult, UnixMillis};

use crate::engine::Engine;
use crate::item::{Item, number};
use crate::write::Change;

pub(crate) struct DynamoDbAccounts {
    engine: Arc<Engine>,
}

impl DynamoDbAccounts {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

fn time(at: Option<UnixMillis>) -> Option<AttributeValue> {
    at.map(|at| number(at.0))
}

/// Limits as attributes.
fn allowance_changes(allowance: &Allowance) -> [Change; 4] {
    let amount = |rule: Option<QuotaRule>| rule.map(|rule| number(rule.amount.cast_signed()));
    let period = |rule: Option<QuotaRule>| {
        let millis = |rule: QuotaRule| i64::try_from(rule.period.as_millis()).unwrap_or(i64::MAX);
        rule.map(millis).map(number)
    };
    [
        ("creations_amount", amount(allowance.creations)),
        ("creations_period", period(allowance.creations)),
        ("redirections_amount", amount(allowance.redirections)),
        ("redirections_period", period(allowance.redirections)),
    ]
}

fn allowance_of(item: &Item) -> PortResult<Allowance> {
    let rule = |amount, period| {
        let amount = item.maybe_number(amount)?;
        let period = item.maybe_number(period)?;
        Ok(amount.zip(period).map(|(amount, period)| QuotaRule {
            amount: amount.cast_unsigned(),
            period: Duration::from_millis(period.cast_unsigned()),
        }))
    };
    Ok(Allowance {
        creations: rule("creations_amount", "creations_period")?,
        redirections: rule("redirections_amount", "redirections_period")?,
    })
}
