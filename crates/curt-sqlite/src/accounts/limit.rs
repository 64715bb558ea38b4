//! A limit as two columns: an amount and a period in milliseconds.

use std::time::Duration;

use curt_core::account::Allowance;
use curt_core::ports::QuotaRule;
use rusqlite::Row;

/// Both columns of a rule; `None` for none.
pub(super) type Columns = (Option<i64>, Option<i64>);

pub(super) fn columns(rule: Option<QuotaRule>) -> Columns {
    let millis = |rule: QuotaRule| i64::try_from(rule.period.as_millis()).unwrap_or(i64::MAX);
    (rule.map(|rule| rule.amount.cast_signed()), rule.map(millis))
}

/// The rule in `column` and the one after it.
pub(super) fn rule_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<QuotaRule>> {
    let amount: Option<i64> = row.get(column)?;
    let period: Option<i64> = row.get(column + 1)?;
    Ok(amount.zip(period).map(|(amount, period)| QuotaRule {
        amount: amount.cast_unsigned(),
        period: Duration::from_millis(period.cast_unsigned()),
    }))
}

/// The allowance in `column` and the three after it.
pub(super) fn allowance_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Allowance> {
    Ok(Allowance {
        creations: rule_of(row, column)?,
        redirections: rule_of(row, column + 2)?,
    })
}
