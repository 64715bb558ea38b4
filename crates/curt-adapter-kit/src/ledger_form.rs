use curt_core::ports::LedgerForm;
use curt_core::{ErrorKind, PortError, PortResult};

/// Refuses [`LedgerForm::Cursor`], for engines whose ledgers have the other forms only.
pub fn refuse_cursor_form(backend: &'static str, form: LedgerForm) -> PortResult<()> {
    if form != LedgerForm::Cursor {
        return Ok(());
    }
    let detail = "there is no form \"cursor\" here: use delete, status or used-table";
    let op = "open a ledger";
    Err(PortError::new(ErrorKind::Invalid, backend, op, detail))
}
