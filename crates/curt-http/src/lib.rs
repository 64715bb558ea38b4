//! The only crate that knows HTTP, JSON and HTML.
