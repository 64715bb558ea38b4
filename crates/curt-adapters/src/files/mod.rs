//! Key files on a local disk.
