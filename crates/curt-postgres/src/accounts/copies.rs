use async_trait::async_trait;
use curt_adapter_kit::{AccountCopies, AccountPart};
use curt_core::PortResult;
use curt_core::ports::{ApiKey, AuditEntry, Invite, Permission};

use super::PostgresAccounts;
use super::invites::invite_of;
use super::limit::Columns;
use super::permissions::permission_of;
use crate::decode::wrong_position;
use crate::engine::{Step, Value};

const OP_EXPORT: &str = "export accounts";
const OP_IMPORT: &str = "import accounts";
const ROWS_AT_ONCE: usize = 1_000;
const LIMIT: i64 = 1_000;

const INVITES: &str = "SELECT secret_hash, role, made_by, created_at, expires_at FROM invites \
     WHERE secret_hash > decode($1, 'hex') ORDER BY secret_hash LIMIT $2";
const PERMISSIONS: &str = "SELECT domain, key, generation, user_id, granted_at, id FROM permissions \
     WHERE id > $1 ORDER BY id LIMIT $2";
/// Nothing is stored where another key has the number, or the prefix has another.
const PUT_API_KEY: &str = "INSERT INTO api_keys AS k (seq, prefix, secret_hash, user_id, name, scopes, creations_amount, \
     creations_period, redirections_amount, redirections_period, created_at, expires_at, revoked_at, parent, bucket) \
     OVERRIDING SYSTEM VALUE \
     SELECT $1::bigint, $2::text, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, nullif($15::bigint, $1::bigint) \
     WHERE NOT EXISTS (SELECT FROM api_keys WHERE seq = $1 AND prefix <> $2) \
     ON CONFLICT (prefix) DO UPDATE SET secret_hash = excluded.secret_hash, user_id = excluded.user_id, \
     name = excluded.name, scopes = excluded.scopes, creations_amount = excluded.creations_amount, \
     creations_period = excluded.creations_period, redirections_amount = excluded.redirections_amount, \
     redirections_period = excluded.redirections_period, created_at = excluded.created_at, \
     expires_at = excluded.expires_at, revoked_at = excluded.revoked_at, parent = excluded.parent, \
     bucket = excluded.bucket WHERE k.seq = excluded.seq RETURNING 1";
/// Numbers that are given later are greater.
const RAISE_API_KEYS: &str =
    "SELECT setval(pg_get_serial_sequence('api_keys', 'seq'), max(seq)) FROM api_keys";
const RAISE_AUDIT: &str =
    "SELECT setval(pg_get_serial_sequence('audit', 'seq'), max(seq)) FROM audit";
const PUT_AUDIT: &str = "INSERT INTO audit (seq, at, actor, action, subject, address) OVERRIDING SYSTEM VALUE \
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[]) \
     ON CONFLICT DO NOTHING RETURNING 1";

#[async_trait]
impl AccountCopies for PostgresAccounts {
    async fn all_invites(&self, after: Option<&str>) -> PortResult<AccountPart<Invite>> {
        let after = after.unwrap_or_default();
        let is_hex =
            after.len().is_multiple_of(2) && after.bytes().all(|one| one.is_ascii_hexdigit());
        if !is_hex {
            return Err(wrong_position(OP_EXPORT));
        }
        let engine = self.tables.engine().await?;
        let rows = engine.read(OP_EXPORT, INVITES, &[&after, &LIMIT]).await?;
        let invites = rows.iter().map(|row| invite_of(OP_EXPORT, row));
        let invites: Vec<Invite> = invites.collect::<PortResult<_>>()?;
        let last = invites.last().filter(|_| invites.len() == ROWS_AT_ONCE);
        let next = last.map(|last| {
            let hash = last.secret_hash.iter();
            hash.map(|byte| format!("{byte:02x}"))
                .collect::<String>()
                .into()
        });
        Ok((invites, next))
    }

    async fn all_permissions(&self, after: Option<&str>) -> PortResult<AccountPart<Permission>> {
        let after = after.map_or(Ok(0), str::parse::<i64>);
        let after = after.map_err(|_| wrong_position(OP_EXPORT))?;
        let engine = self.tables.engine().await?;
        let rows = engine
            .read(OP_EXPORT, PERMISSIONS, &[&after, &LIMIT])
            .await?;
        let permissions = rows.iter().map(|row| permission_of(OP_EXPORT, row));
        let permissions: Vec<Permission> = permissions.collect::<PortResult<_>>()?;
        let last = permissions
            .last()
            .filter(|_| permissions.len() == ROWS_AT_ONCE);
        let next = last.map(|last| last.id.0.to_string().into());
        Ok((permissions, next))
    }

    async fn put_api_key(&self, key: &ApiKey) -> PortResult<bool> {
        let (number, scopes) = (i64::from(key.number.0), i16::from(key.scopes.stored()));
        let (user, bucket) = (key.user.0.cast_signed(), i64::from(key.bucket.0));
        let (expires_at, revoked_at) =
            (key.expires_at.map(|at| at.0), key.revoked_at.map(|at| at.0));
        let (hash, name, prefix) = (&key.secret_hash[..], &*key.name, &*key.prefix);
        let (parent, limits) = (key.parent.as_deref(), Columns::of(key.allowance));
        let mut values: Vec<Value<'_>> = vec![&number, &prefix, &hash, &user, &name, &scopes];
        values.extend(limits.values());
        values.extend([
            &key.created_at.0 as Value<'_>,
            &expires_at,
            &revoked_at,
            &parent,
            &bucket,
        ]);
        let put = Step {
            sql: PUT_API_KEY,
            values: &values,
        };
        let raise = Step {
            sql: RAISE_API_KEYS,
            values: &[],
        };
        let engine = self.tables.engine().await?;
        let answers = engine.transact(OP_IMPORT, &[put, raise]).await?;
        Ok(answers.first().is_some_and(|rows| !rows.is_empty()))
    }

    async fn put_audit(&self, entries: &[(u64, AuditEntry)]) -> PortResult<u64> {
        let column = |read: fn(&(u64, AuditEntry)) -> i64| -> Vec<i64> {
            entries.iter().map(read).collect()
        };
        let numbers = column(|(number, _)| number.cast_signed());
        let times = column(|(_, entry)| entry.at.0);
        let actors = entries.iter().map(|(_, entry)| entry.actor);
        let actors: Vec<Option<i64>> = actors.map(|actor| Some(actor?.0.cast_signed())).collect();
        let actions: Vec<&str> = entries.iter().map(|(_, entry)| &*entry.action).collect();
        let subjects: Vec<&str> = entries.iter().map(|(_, entry)| &*entry.subject).collect();
        let addresses = entries.iter().map(|(_, entry)| entry.address.as_deref());
        let addresses: Vec<Option<&str>> = addresses.collect();
        let put = Step {
            sql: PUT_AUDIT,
            values: &[&numbers, &times, &actors, &actions, &subjects, &addresses],
        };
        let raise = Step {
            sql: RAISE_AUDIT,
            values: &[],
        };
        let engine = self.tables.engine().await?;
        let answers = engine.transact(OP_IMPORT, &[put, raise]).await?;
        Ok(answers.first().map_or(0, |rows| rows.len() as u64))
    }
}
