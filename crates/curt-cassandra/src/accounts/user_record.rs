//! A user as a row of the table `users`.

use curt_adapter_kit::wide_column::accounts::StoredUser;
use curt_core::account::{Allowance, Role, User};
use curt_core::{OwnerId, PortResult, UnixMillis};
use scylla::{DeserializeRow, SerializeRow};

use super::{mark_of, millis, rule_columns, rule_of};
use crate::failure::corrupt;
use crate::statement::Cql;

pub(super) const GET: Cql = Cql::read(
    "SELECT id, first_name, middle_name, last_name, email, password_hash, role, disabled_at, creations_amount, \
     creations_period, redirections_amount, redirections_period, created_at, updated_at, change_mark, removed \
     FROM KEYSPACE.users WHERE namespace = ? AND id = ?",
);
pub(super) const INSERT: Cql = Cql::conditional(
    "INSERT INTO KEYSPACE.users (namespace, id, first_name, middle_name, last_name, email, password_hash, role, \
     disabled_at, creations_amount, creations_period, redirections_amount, redirections_period, created_at, \
     updated_at, change_mark, removed) \
     VALUES (:namespace, :id, :first_name, :middle_name, :last_name, :email, :password_hash, :role, :disabled_at, \
     :creations_amount, :creations_period, :redirections_amount, :redirections_period, :created_at, :updated_at, \
     :change_mark, false) IF NOT EXISTS",
);
/// Over a user who was removed.
pub(super) const REINSERT: Cql = Cql::conditional(
    "UPDATE KEYSPACE.users SET first_name = :first_name, middle_name = :middle_name, last_name = :last_name, \
     email = :email, password_hash = :password_hash, role = :role, disabled_at = :disabled_at, \
     creations_amount = :creations_amount, creations_period = :creations_period, \
     redirections_amount = :redirections_amount, redirections_period = :redirections_period, \
     created_at = :created_at, updated_at = :updated_at, change_mark = :change_mark, removed = false \
     WHERE namespace = :namespace AND id = :id IF removed = true",
);
pub(super) const UPDATE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.users SET first_name = :first_name, middle_name = :middle_name, last_name = :last_name, \
     email = :email, password_hash = :password_hash, role = :role, disabled_at = :disabled_at, \
     creations_amount = :creations_amount, creations_period = :creations_period, \
     redirections_amount = :redirections_amount, redirections_period = :redirections_period, \
     created_at = :created_at, updated_at = :updated_at, change_mark = :change_mark \
     WHERE namespace = :namespace AND id = :id IF updated_at = :seen AND removed = false",
);
/// Keeps nothing of the person.
pub(super) const REMOVE: Cql = Cql::conditional(
    "UPDATE KEYSPACE.users SET removed = true, change_mark = ?, first_name = '', middle_name = null, last_name = '', \
     email = '', password_hash = null WHERE namespace = ? AND id = ? IF removed = false",
);

#[derive(DeserializeRow)]
pub(super) struct UserRow {
    id: i64,
    first_name: String,
    middle_name: Option<String>,
    last_name: String,
    email: String,
    password_hash: Option<String>,
    role: i8,
    disabled_at: Option<i64>,
    creations_amount: Option<i64>,
    creations_period: Option<i64>,
    redirections_amount: Option<i64>,
    redirections_period: Option<i64>,
    created_at: i64,
    updated_at: i64,
    change_mark: Vec<u8>,
    removed: bool,
}

impl UserRow {
    pub(super) fn into_stored(mut self, op: &'static str) -> PortResult<StoredUser> {
        let changed_by = mark_of(std::mem::take(&mut self.change_mark));
        let user = match self.removed {
            true => None,
            false => Some(self.into_user(op)?),
        };
        Ok(StoredUser { user, changed_by })
    }

    fn into_user(self, op: &'static str) -> PortResult<User> {
        let role = Role::from_stored(self.role.cast_unsigned());
        Ok(User {
            id: OwnerId(self.id.cast_unsigned()),
            first_name: self.first_name.into(),
            middle_name: self.middle_name.map(Into::into),
            last_name: self.last_name.into(),
            email: self.email.into(),
            password_hash: self.password_hash.map(Into::into),
            role: role.ok_or_else(|| corrupt(op, self.role))?,
            disabled_at: self.disabled_at.map(UnixMillis),
            allowance: Allowance {
                creations: rule_of(self.creations_amount, self.creations_period),
                redirections: rule_of(self.redirections_amount, self.redirections_period),
            },
            created_at: UnixMillis(self.created_at),
            updated_at: UnixMillis(self.updated_at),
        })
    }
}

#[derive(SerializeRow)]
pub(super) struct UserWrite<'a> {
    namespace: &'a str,
    id: i64,
    first_name: &'a str,
    middle_name: Option<&'a str>,
    last_name: &'a str,
    email: &'a str,
    password_hash: Option<&'a str>,
    role: i8,
    disabled_at: Option<i64>,
    creations_amount: Option<i64>,
    creations_period: Option<i64>,
    redirections_amount: Option<i64>,
    redirections_period: Option<i64>,
    created_at: i64,
    updated_at: i64,
    change_mark: &'a [u8],
}

#[derive(SerializeRow)]
pub(super) struct UserUpdate<'a> {
    #[scylla(flatten)]
    pub(super) user: UserWrite<'a>,
    pub(super) seen: i64,
}

impl<'a> UserWrite<'a> {
    pub(super) fn new(namespace: &'a str, user: &'a User, mark: &'a [u8; 16]) -> Self {
        let (creations_amount, creations_period) = rule_columns(user.allowance.creations);
        let (redirections_amount, redirections_period) = rule_columns(user.allowance.redirections);
        Self {
            namespace,
            id: user.id.0.cast_signed(),
            first_name: &user.first_name,
            middle_name: user.middle_name.as_deref(),
            last_name: &user.last_name,
            email: &user.email,
            password_hash: user.password_hash.as_deref(),
            role: user.role as i8,
            disabled_at: millis(user.disabled_at),
            creations_amount,
            creations_period,
            redirections_amount,
            redirections_period,
            created_at: user.created_at.0,
            updated_at: user.updated_at.0,
            change_mark: mark,
        }
    }
}
