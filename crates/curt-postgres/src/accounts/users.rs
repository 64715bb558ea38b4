use async_trait::async_trait;
use curt_core::account::{Role, User};
use curt_core::ports::{QuotaRule, UserChange, UserRemoval, Users};
use curt_core::{OwnerId, PortResult, UnixMillis};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::{PostgresAccounts, limit};
use crate::decode::{number, owner, rows_max, time, time_or_none};
use crate::engine::{Engine, Step, Value, column};
use crate::failure::sql_state;

// Columns are in the order of `user_of` and of what `write` binds.
const INSERT: &str = "INSERT INTO users (id, first_name, middle_name, last_name, email, password_hash, role, \
     disabled_at, creations_amount, creations_period, redirections_amount, redirections_period, updated_at, \
     created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING \
     RETURNING 1";
const UPDATE: &str = "UPDATE users SET first_name = $2, middle_name = $3, last_name = $4, email = $5, \
     password_hash = $6, role = $7, disabled_at = $8, creations_amount = $9, creations_period = $10, \
     redirections_amount = $11, redirections_period = $12, updated_at = $13 \
     WHERE id = $1 AND updated_at = $14 RETURNING 1";
const FIND: &str = "SELECT id, first_name, middle_name, last_name, email, password_hash, role, disabled_at, \
     creations_amount, creations_period, redirections_amount, redirections_period, updated_at, created_at FROM users \
     WHERE id = $1";
const FIND_BY_EMAIL: &str = "SELECT id, first_name, middle_name, last_name, email, password_hash, role, disabled_at, \
     creations_amount, creations_period, redirections_amount, redirections_period, updated_at, created_at FROM users \
     WHERE email = $1";
const LIST: &str = "SELECT id, first_name, middle_name, last_name, email, password_hash, role, disabled_at, \
     creations_amount, creations_period, redirections_amount, redirections_period, updated_at, created_at FROM users \
     WHERE id > $1 ORDER BY id LIMIT $2";
const WITH_PASSWORD: &str =
    "SELECT EXISTS (SELECT FROM users WHERE password_hash IS NOT NULL LIMIT 1)";
const WITH_LIMIT: &str = "SELECT id, redirections_amount, redirections_period FROM users \
     WHERE redirections_amount IS NOT NULL ORDER BY id";
const DISABLED: &str = "SELECT id FROM users WHERE disabled_at IS NOT NULL ORDER BY id";

// Two administrators who remove each other at once must not both find the other.
const LOCK: &str = "LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE";
const REMOVE: &str = "WITH target AS (SELECT id, role FROM users WHERE id = $1), \
     gone AS (DELETE FROM users AS u USING target AS t WHERE u.id = t.id AND (t.role = 0 OR EXISTS \
       (SELECT FROM users AS o WHERE o.role = 1 AND o.disabled_at IS NULL AND o.id <> $1)) RETURNING u.id), \
     signed_out AS (DELETE FROM sessions WHERE user_id IN (SELECT id FROM gone)), \
     forbidden AS (DELETE FROM permissions WHERE user_id IN (SELECT id FROM gone)) \
     SELECT EXISTS (SELECT FROM gone) FROM target";

#[async_trait]
impl Users for PostgresAccounts {
    async fn add_user(&self, user: &User) -> PortResult<bool> {
        let engine = self.tables.engine().await?;
        let added = write(engine, "add a user", INSERT, user, user.created_at).await?;
        Ok(added)
    }

    async fn user(&self, id: OwnerId) -> PortResult<Option<User>> {
        const OP: &str = "find a user";
        let engine = self.tables.lookups().await?;
        let row = engine.look_up(OP, FIND, &[&id.0.cast_signed()]).await?;
        row.map(|row| user_of(OP, &row)).transpose()
    }

    async fn user_by_email(&self, email: &str) -> PortResult<Option<User>> {
        const OP: &str = "find a user";
        // People may type anything; the engine takes no such text, and nobody can have it.
        if email.contains('\0') {
            return Ok(None);
        }
        let engine = self.tables.engine().await?;
        let rows = engine.read_latest(OP, FIND_BY_EMAIL, &[&email]).await?;
        rows.first().map(|row| user_of(OP, row)).transpose()
    }

    async fn users(&self, after: Option<OwnerId>, limit: usize) -> PortResult<Vec<User>> {
        const OP: &str = "list users";
        let after = after.map_or(i64::MIN, |after| after.0.cast_signed());
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, LIST, &[&after, &rows_max(limit)]).await?;
        rows.iter().map(|row| user_of(OP, row)).collect()
    }

    async fn update_user(&self, user: &User, seen: UnixMillis) -> PortResult<UserChange> {
        const OP: &str = "change a user";
        let engine = self.tables.engine().await?;
        match write(engine, OP, UPDATE, user, seen).await {
            Ok(true) => Ok(UserChange::Changed),
            Ok(false) => Ok(match find(engine, OP, user.id).await? {
                None => UserChange::Absent,
                Some(_) => UserChange::Stale,
            }),
            Err(error) if sql_state(&error) == Some(&SqlState::UNIQUE_VIOLATION) => {
                Ok(UserChange::EmailTaken)
            }
            Err(error) => Err(error),
        }
    }

    async fn remove_user(&self, id: OwnerId) -> PortResult<UserRemoval> {
        const OP: &str = "remove a user";
        let steps = [
            Step {
                sql: LOCK,
                values: &[],
            },
            Step {
                sql: REMOVE,
                values: &[&id.0.cast_signed()],
            },
        ];
        let engine = self.tables.engine().await?;
        let answers = engine.transact(OP, &steps).await?;
        let found = answers.last().and_then(|rows| rows.first());
        Ok(match found.map(|row| column(OP, row, 0)).transpose()? {
            None => UserRemoval::Absent,
            Some(true) => UserRemoval::Removed,
            Some(false) => UserRemoval::LastAdmin,
        })
    }

    async fn anybody_can_sign_in(&self) -> PortResult<bool> {
        const OP: &str = "look for passwords";
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, WITH_PASSWORD, &[]).await?;
        rows.first().map_or(Ok(false), |row| column(OP, row, 0))
    }

    async fn disabled_users(&self) -> PortResult<Vec<OwnerId>> {
        const OP: &str = "list disabled users";
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP, DISABLED, &[]).await?;
        rows.iter().map(|row| owner(OP, row, 0)).collect()
    }
}

pub(super) async fn redirection_limits(
    engine: &Engine,
    op: &'static str,
) -> PortResult<Vec<(OwnerId, QuotaRule)>> {
    let rows = engine.read(op, WITH_LIMIT, &[]).await?;
    let mut limits = Vec::new();
    for row in &rows {
        let id = owner(op, row, 0)?;
        limits.extend(limit::rule_of(op, row, 1)?.map(|rule| (id, rule)));
    }
    Ok(limits)
}

async fn find(engine: &Engine, op: &'static str, id: OwnerId) -> PortResult<Option<User>> {
    let rows = engine.read_latest(op, FIND, &[&id.0.cast_signed()]).await?;
    rows.first().map(|row| user_of(op, row)).transpose()
}

/// Runs [`INSERT`] or [`UPDATE`] and says whether it did anything. The last value is the creation time of the one, and
/// the `updated_at` that the other expects.
async fn write(
    engine: &Engine,
    op: &'static str,
    sql: &str,
    user: &User,
    last: UnixMillis,
) -> PortResult<bool> {
    let allowance = limit::Columns::of(user.allowance);
    let [
        creations,
        creations_period,
        redirections,
        redirections_period,
    ] = allowance.values();
    let values: [Value<'_>; 14] = [
        &user.id.0.cast_signed(),
        &&*user.first_name,
        &user.middle_name.as_deref(),
        &&*user.last_name,
        &&*user.email,
        &user.password_hash.as_deref(),
        &(user.role as i16),
        &user.disabled_at.map(|at| at.0),
        creations,
        creations_period,
        redirections,
        redirections_period,
        &user.updated_at.0,
        &last.0,
    ];
    let rows = engine.write(op, sql, &values).await?;
    Ok(!rows.is_empty())
}

fn user_of(op: &'static str, row: &Row) -> PortResult<User> {
    Ok(User {
        id: owner(op, row, 0)?,
        first_name: column(op, row, 1)?,
        middle_name: column(op, row, 2)?,
        last_name: column(op, row, 3)?,
        email: column(op, row, 4)?,
        password_hash: column(op, row, 5)?,
        role: number(op, row, 6, Role::from_stored)?,
        disabled_at: time_or_none(op, row, 7)?,
        allowance: limit::allowance_of(op, row, 8)?,
        updated_at: time(op, row, 12)?,
        created_at: time(op, row, 13)?,
    })
}
