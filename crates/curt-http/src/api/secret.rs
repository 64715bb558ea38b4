//! Passwords in requests: read, and never shown again.

use std::fmt;

use curt_core::limits::PASSWORD_BYTES_MAX;
use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// A text that must not come up in logs. It cannot be serialised, and its `Debug` form hides it.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_inner(self) -> String {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl PartialSchema for Secret {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Password)))
            .description(Some("A password, at most 256 bytes."))
            .max_length(Some(PASSWORD_BYTES_MAX))
            .write_only(true)
            .examples(["correct horse battery staple"])
            .into()
    }
}

impl ToSchema for Secret {
    fn name() -> std::borrow::Cow<'static, str> {
        "Password".into()
    }
}
