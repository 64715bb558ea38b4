use async_trait::async_trait;
use curt_core::account::{Role, User};
use curt_core::ports::{QuotaRule, UserChange, UserRemoval, Users};
use curt_core::{OwnerId, PortResult, UnixMillis};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{SqliteAccounts, limit, rows_max};
use crate::decode;

// Columns are in the order of `user_of` and of what `write` binds.
const INSERT: &str = "INSERT INTO users (id, first_name, middle_name, last_name, email, password_hash, role, \
     disabled_at, creations_amount, creations_period, redirections_amount, redirections_period, updated_at, \
     created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING";
const UPDATE: &str = "UPDATE users SET first_name = ?2, middle_name = ?3, last_name = ?4, email = ?5, \
     password_hash = ?6, role = ?7, disabled_at = ?8, creations_amount = ?9, creations_period = ?10, \
     redirections_amount = ?11, redirections_period = ?12, updated_at = ?13 WHERE id = ?1 AND updated_at = ?14 \
     AND NOT EXISTS (SELECT 1 FROM users AS other WHERE other.email = ?5 AND other.id <> ?1)";
const FIND: &str = "SELECT id, first_name, middle_name, last_name, email, password_hash, role, disabled_at, \
     creations_amount, creations_period, redirections_amount, redirections_period, updated_at, created_at FROM users \
     WHERE id = ?1";
const FIND_BY_EMAIL: &str = "SELECT id, first_name, middle_name, last_name, email, password_hash, role, disabled_at, \
     creations_amount, creations_period, redirections_amount, redirections_period, updated_at, created_at FROM users \
     WHERE email = ?1";
const LIST: &str = "SELECT id, first_name, middle_name, last_name, email, password_hash, role, disabled_at, \
     creations_amount, creations_period, redirections_amount, redirections_period, updated_at, created_at FROM users \
     WHERE id > ?1 ORDER BY id LIMIT ?2";

const OTHER_ADMIN: &str =
    "SELECT 1 FROM users WHERE role = 1 AND disabled_at IS NULL AND id <> ?1 LIMIT 1";
const REMOVE: [&str; 3] = [
    "DELETE FROM sessions INDEXED BY sessions_by_user WHERE user = ?1",
    "DELETE FROM permissions WHERE user = ?1",
    "DELETE FROM users WHERE id = ?1",
];

#[async_trait]
impl Users for SqliteAccounts {
    async fn add_user(&self, user: &User) -> PortResult<bool> {
        let user = user.clone();
        self.db
            .writer
            .write("add a user", 1, move |work| {
                Ok(write(work.connection, INSERT, &user, user.created_at)? == 1)
            })
            .await
    }

    async fn user(&self, id: OwnerId) -> PortResult<Option<User>> {
        self.db
            .readers
            .look_up("find a user", |connection| find(connection, id))
    }

    async fn user_by_email(&self, email: &str) -> PortResult<Option<User>> {
        self.db.readers.look_up("find a user", |connection| {
            connection
                .prepare_cached(FIND_BY_EMAIL)?
                .query_row([email], user_of)
                .optional()
        })
    }

    async fn users(&self, after: Option<OwnerId>, limit: usize) -> PortResult<Vec<User>> {
        let after = after.map_or(i64::MIN, |after| after.0.cast_signed());
        self.db
            .readers
            .scan("list users", move |connection| {
                connection
                    .prepare_cached(LIST)?
                    .query_map((after, rows_max(limit)), user_of)?
                    .collect()
            })
            .await
    }

    async fn update_user(&self, user: &User, seen: UnixMillis) -> PortResult<UserChange> {
        let user = user.clone();
        self.db
            .writer
            .write("change a user", 1, move |work| {
                if write(work.connection, UPDATE, &user, seen)? == 1 {
                    return Ok(UserChange::Changed);
                }
                Ok(match find(work.connection, user.id)? {
                    None => UserChange::Absent,
                    Some(now) if now.updated_at != seen => UserChange::Stale,
                    Some(_) => UserChange::EmailTaken,
                })
            })
            .await
    }

    async fn remove_user(&self, id: OwnerId) -> PortResult<UserRemoval> {
        self.db
            .writer
            .write("remove a user", 1, move |work| remove(work.connection, id))
            .await
    }

    async fn anybody_can_sign_in(&self) -> PortResult<bool> {
        self.db.readers.look_up("look for passwords", |connection| {
            connection
                .prepare_cached(
                    "SELECT 1 FROM users INDEXED BY users_with_password \
                     WHERE password_hash IS NOT NULL LIMIT 1",
                )?
                .exists(())
        })
    }

    async fn disabled_users(&self) -> PortResult<Vec<OwnerId>> {
        self.db
            .readers
            .scan_in_background("list disabled users", |connection| {
                connection
                    .prepare_cached(
                        "SELECT id FROM users INDEXED BY users_disabled \
                         WHERE disabled_at IS NOT NULL ORDER BY id",
                    )?
                    .query_map((), |row| Ok(OwnerId(row.get::<_, i64>(0)?.cast_unsigned())))?
                    .collect()
            })
            .await
    }
}

fn remove(connection: &Connection, id: OwnerId) -> rusqlite::Result<UserRemoval> {
    let Some(user) = find(connection, id)? else {
        return Ok(UserRemoval::Absent);
    };
    let id = [id.0.cast_signed()];
    if user.role == Role::Admin && !connection.prepare_cached(OTHER_ADMIN)?.exists(id)? {
        return Ok(UserRemoval::LastAdmin);
    }
    for sql in REMOVE {
        connection.prepare_cached(sql)?.execute(id)?;
    }
    Ok(UserRemoval::Removed)
}

pub(super) fn redirection_limits(
    connection: &Connection,
) -> rusqlite::Result<Vec<(OwnerId, QuotaRule)>> {
    let limits = connection
        .prepare_cached(
            "SELECT id, redirections_amount, redirections_period FROM users INDEXED BY users_with_limit \
             WHERE redirections_amount IS NOT NULL ORDER BY id",
        )?
        .query_map((), |row| {
            let id = OwnerId(row.get::<_, i64>(0)?.cast_unsigned());
            Ok(limit::rule_of(row, 1)?.map(|rule| (id, rule)))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(limits.into_iter().flatten().collect())
}

fn find(connection: &Connection, id: OwnerId) -> rusqlite::Result<Option<User>> {
    connection
        .prepare_cached(FIND)?
        .query_row([id.0.cast_signed()], user_of)
        .optional()
}

/// Runs [`INSERT`] or [`UPDATE`] and returns how many rows it changed. The last value is the creation time of the one,
/// and the `updated_at` that the other expects.
fn write(
    connection: &Connection,
    sql: &str,
    user: &User,
    last: UnixMillis,
) -> rusqlite::Result<usize> {
    let (creations, creations_period) = limit::columns(user.allowance.creations);
    let (redirections, redirections_period) = limit::columns(user.allowance.redirections);
    connection.prepare_cached(sql)?.execute(params![
        user.id.0.cast_signed(),
        &*user.first_name,
        user.middle_name.as_deref(),
        &*user.last_name,
        &*user.email,
        user.password_hash.as_deref(),
        user.role as u8,
        user.disabled_at.map(|at| at.0),
        creations,
        creations_period,
        redirections,
        redirections_period,
        user.updated_at.0,
        last.0,
    ])
}

fn user_of(row: &Row<'_>) -> rusqlite::Result<User> {
    Ok(User {
        id: OwnerId(row.get::<_, i64>(0)?.cast_unsigned()),
        first_name: row.get(1)?,
        middle_name: row.get(2)?,
        last_name: row.get(3)?,
        email: row.get(4)?,
        password_hash: row.get(5)?,
        role: decode::number(row, 6, Role::from_stored)?,
        disabled_at: row.get::<_, Option<i64>>(7)?.map(UnixMillis),
        allowance: limit::allowance_of(row, 8)?,
        updated_at: UnixMillis(row.get(12)?),
        created_at: UnixMillis(row.get(13)?),
    })
}
