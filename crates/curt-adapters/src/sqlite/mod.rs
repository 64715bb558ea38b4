//! The embedded database.
