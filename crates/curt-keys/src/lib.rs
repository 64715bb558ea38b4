//! The KEYS line: mint, ledger, sync, pool, buffer, and the strategies.
