//! Words of accounts as JSON: ids, roles, scopes, rates.

use std::time::Duration;

use curt_core::ports::QuotaRule;
use curt_core::{OwnerId, Role, Scope};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::body::Object;
use crate::problem::Problem;

/// A user's id: digits in a string, because it has more of them than some languages' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserId(pub OwnerId);

impl UserId {
    /// Only the exact spelling: `+7` and `007` are nobody.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = OwnerId(text.parse().ok()?);
        (id != OwnerId::ANONYMOUS && id.to_string() == text).then_some(Self(id))
    }
}

impl Serialize for UserId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl PartialSchema for UserId {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("The id of a user."))
            .pattern(Some("^[1-9][0-9]{0,19}$"))
            .examples(["254871632896000123"])
            .into()
    }
}

impl ToSchema for UserId {
    fn name() -> std::borrow::Cow<'static, str> {
        "UserId".into()
    }
}

/// Administrators may also see and change what belongs to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Role)]
pub(crate) enum RoleName {
    Member,
    Admin,
}

impl From<Role> for RoleName {
    fn from(role: Role) -> Self {
        match role {
            Role::Member => Self::Member,
            Role::Admin => Self::Admin,
        }
    }
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Member => Self::Member,
            RoleName::Admin => Self::Admin,
        }
    }
}

/// `read`: see links and accounts. `create`: make links. `manage`: change and delete links, and the account itself.
/// `admin`: what administrators do, as long as the key's user is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Scope)]
pub(crate) enum ScopeName {
    Read,
    Create,
    Manage,
    Admin,
}

impl From<Scope> for ScopeName {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Read => Self::Read,
            Scope::Create => Self::Create,
            Scope::Manage => Self::Manage,
            Scope::Admin => Self::Admin,
        }
    }
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Read => Self::Read,
            ScopeName::Create => Self::Create,
            ScopeName::Manage => Self::Manage,
            ScopeName::Admin => Self::Admin,
        }
    }
}

const RATE_AMOUNT_MAX: u64 = 1_000_000_000;
const RATE_PERIOD_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

// The schema below can hold only literal numbers.
const _: () = assert!(RATE_AMOUNT_MAX == 1_000_000_000 && RATE_PERIOD_MAX.as_secs() == 31_622_400);

/// How much per period; all of it may be taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Rate)]
pub(crate) struct RateBody {
    /// 0: none at all.
    #[schema(maximum = 1_000_000_000, example = 1000)]
    pub amount: u64,
    #[schema(minimum = 1, maximum = 31_622_400, example = 3600)]
    pub period_seconds: u64,
}

impl RateBody {
    pub(crate) fn new(rule: QuotaRule) -> Self {
        let period = rule.period;
        Self {
            amount: rule.amount,
            period_seconds: period.as_secs() + u64::from(period.subsec_nanos() > 0),
        }
    }

    fn rule(self, field: &str) -> Result<QuotaRule, Problem> {
        let outside = |part, message: String| {
            Err(Problem::invalid_field(
                format!("{field}.{part}"),
                "range",
                message,
            ))
        };
        let period = Duration::from_secs(self.period_seconds);
        if self.amount > RATE_AMOUNT_MAX {
            let message = format!("Must be a number from 0 to {RATE_AMOUNT_MAX}.");
            return outside("amount", message);
        }
        if period.is_zero() || period > RATE_PERIOD_MAX {
            let most = RATE_PERIOD_MAX.as_secs();
            return outside(
                "period_seconds",
                format!("Must be a number from 1 to {most}."),
            );
        }
        Ok(QuotaRule {
            amount: self.amount,
            period,
        })
    }
}

/// The rule that a request gives, if it gives one.
pub(crate) fn rule(
    field: &str,
    rate: Option<Object<RateBody>>,
) -> Result<Option<QuotaRule>, Problem> {
    rate.map(|Object(rate)| rate.rule(field)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        assert_eq!(UserId::parse("7"), Some(UserId(OwnerId(7))));
        for text in [
            "",
            "0",
            "+7",
            "07",
            " 7",
            "7 ",
            "-7",
            "0x7",
            "me",
            "18446744073709551616",
        ] {
            assert_eq!(UserId::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_rate_has_bounds() {
        let rate = |amount, period_seconds| {
            let rate = RateBody {
                amount,
                period_seconds,
            };
            rate.rule("creations").map(RateBody::new)
        };
        assert!(rate(0, 1).is_ok() && rate(1_000_000_000, 31_622_400).is_ok());
        for (amount, period, field) in [
            (1_000_000_001, 1, "creations.amount"),
            (1, 0, "creations.period_seconds"),
            (1, 31_622_401, "creations.period_seconds"),
        ] {
            let problem = rate(amount, period).unwrap_err();
            assert_eq!(problem.errors()[0].field, field);
        }
    }
}
