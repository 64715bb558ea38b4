//! Single keys in the tables `minted_keys` and `used_keys`. Lists of keys travel as JSON, in one value.

use curt_core::Key;
use mysql_async::prelude::Queryable;
use mysql_async::{Error, Transaction};

use curt_core::ports::LedgerForm;

/// A key needs no escapes: it is made of letters, digits and `-_.`.
pub(crate) fn list(keys: &[Key]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    format!("[{}]", quoted.join(","))
}

/// Whether no owner with a higher fencing token has been here. Remembers this one.
pub(super) async fn advance_fencing_token(
    transaction: &mut Transaction<'_>,
    fencing_token: u64,
) -> Result<bool, Error> {
    let raise = "UPDATE key_owner SET fencing_token = ? WHERE fencing_token < ?";
    transaction
        .exec_drop(raise, (fencing_token, fencing_token))
        .await?;
    let highest = "SELECT fencing_token FROM key_owner";
    let highest: Option<u64> = transaction.query_first(highest).await?;
    Ok(highest.is_some_and(|highest| highest <= fencing_token))
}

/// Adds those that are not known as unused, in one order for everybody, so that no two wait for each other in a
/// circle. Returns how many that were.
pub(super) async fn add(
    transaction: &mut Transaction<'_>,
    form: LedgerForm,
    list: &str,
) -> Result<u64, Error> {
    let sql = match form {
        LedgerForm::Delete | LedgerForm::Status | LedgerForm::Cursor => {
            "INSERT IGNORE INTO minted_keys (name) SELECT name FROM \
             JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS listed \
             ORDER BY CRC32(name), name"
        }
        LedgerForm::UsedTable => {
            "INSERT IGNORE INTO minted_keys (name) SELECT name FROM \
             JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS listed \
             WHERE NOT EXISTS (SELECT 1 FROM used_keys WHERE used_keys.name = listed.name) ORDER BY CRC32(name), name"
        }
    };
    transaction.exec_drop(sql, (list,)).await?;
    Ok(transaction.affected_rows())
}

/// Locks the next unused keys: at most `limit` (K-3), and none that another taker has locked.
pub(super) async fn lock_unused(
    transaction: &mut Transaction<'_>,
    limit: u64,
) -> Result<Vec<(u64, String)>, Error> {
    let sql = "SELECT id, name FROM minted_keys WHERE status = 0 ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED";
    let rows: Vec<(u64, String)> = transaction.exec(sql, (limit,)).await?;
    assert!(rows.len() as u64 <= limit, "K-3");
    Ok(rows)
}

pub(super) async fn mark_open(
    transaction: &mut Transaction<'_>,
    batch: u64,
    rows: &[(u64, String)],
) -> Result<(), Error> {
    let ids: Vec<String> = rows.iter().map(|(id, _)| id.to_string()).collect();
    let sql = format!(
        "UPDATE minted_keys SET status = 2, batch = {batch} WHERE id IN ({})",
        ids.join(",")
    );
    transaction.query_drop(sql).await
}

pub(super) async fn of_batch(
    transaction: &mut Transaction<'_>,
    batch: u64,
) -> Result<Vec<String>, Error> {
    let sql = "SELECT name FROM minted_keys WHERE batch = ? ORDER BY id";
    transaction.exec(sql, (batch,)).await
}

/// Makes those of a batch that are listed unused again. Returns how many that were.
pub(super) async fn give_back(
    transaction: &mut Transaction<'_>,
    batch: u64,
    list: &str,
) -> Result<u64, Error> {
    let sql = "UPDATE minted_keys JOIN \
         JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS listed \
         ON minted_keys.name = listed.name SET status = 0, batch = NULL WHERE batch = ?";
    transaction.exec_drop(sql, (list, batch)).await?;
    Ok(transaction.affected_rows())
}

/// Does with the rest of a batch what the form does with used keys.
pub(super) async fn set_used(
    transaction: &mut Transaction<'_>,
    form: LedgerForm,
    batch: u64,
) -> Result<(), Error> {
    if form == LedgerForm::UsedTable {
        let moved = "INSERT IGNORE INTO used_keys SELECT name FROM minted_keys WHERE batch = ?";
        transaction.exec_drop(moved, (batch,)).await?;
    }
    let leave = match form {
        LedgerForm::Delete | LedgerForm::UsedTable | LedgerForm::Cursor => {
            "DELETE FROM minted_keys WHERE batch = ?"
        }
        LedgerForm::Status => "UPDATE minted_keys SET status = 1, batch = NULL WHERE batch = ?",
    };
    transaction.exec_drop(leave, (batch,)).await
}

/// Makes used keys unused again, whether or not their rows are still there. Returns how many that were.
pub(super) async fn recycle(transaction: &mut Transaction<'_>, list: &str) -> Result<u64, Error> {
    let unmoved = "DELETE used_keys FROM used_keys JOIN \
         JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS listed \
         ON used_keys.name = listed.name";
    transaction.exec_drop(unmoved, (list,)).await?;
    let unmarked = "UPDATE minted_keys JOIN \
         JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS listed \
         ON minted_keys.name = listed.name SET status = 0 WHERE status = 1";
    transaction.exec_drop(unmarked, (list,)).await?;
    let unmarked = transaction.affected_rows();
    Ok(unmarked + add(transaction, LedgerForm::Delete, list).await?)
}
