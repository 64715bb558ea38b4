//! A limit as two columns: an amount and a period in milliseconds.

use std::time::Duration;

use curt_core::PortResult;
use curt_core::account::Allowance;
use curt_core::ports::QuotaRule;
use tokio_postgres::Row;

use crate::engine::{Value, column};

/// An allowance as four columns.
pub(super) struct Columns([Option<i64>; 4]);

impl Columns {
    pub(super) fn of(allowance: Allowance) -> Self {
        let amount = |rule: QuotaRule| rule.amount.cast_signed();
        let period = |rule: QuotaRule| i64::try_from(rule.period.as_millis()).unwrap_or(i64::MAX);
        let Allowance {
            creations,
            redirections,
        } = allowance;
        Self([
            creations.map(amount),
            creations.map(period),
            redirections.map(amount),
            redirections.map(period),
        ])
    }

    pub(super) fn values(&self) -> [Value<'_>; 4] {
        self.0.each_ref().map(|column| column as Value<'_>)
    }
}

/// The rule in the column at `index` and the one after it.
pub(super) fn rule_of(op: &'static str, row: &Row, index: usize) -> PortResult<Option<QuotaRule>> {
    let amount: Option<i64> = column(op, row, index)?;
    let period: Option<i64> = column(op, row, index + 1)?;
    Ok(amount.zip(period).map(|(amount, period)| QuotaRule {
        amount: amount.cast_unsigned(),
        period: Duration::from_millis(period.cast_unsigned()),
    }))
}

/// The allowance in the column at `index` and the three after it.
pub(super) fn allowance_of(op: &'static str, row: &Row, index: usize) -> PortResult<Allowance> {
    Ok(Allowance {
        creations: rule_of(op, row, index)?,
        redirections: rule_of(op, row, index + 2)?,
    })
}
