//! The LINKS line: admit, create, resolve, purge.
