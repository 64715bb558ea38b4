//! Who may follow a link, as requests say it.

use curt_core::Visibility;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `public`: everybody may follow the link. `private`: its owner and whoever has a permission. `password`: whoever
/// knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Visibility)]
pub(crate) enum VisibilityName {
    Public,
    Private,
    Password,
}

impl From<Visibility> for VisibilityName {
    fn from(visibility: Visibility) -> Self {
        match visibility {
            Visibility::Public => Self::Public,
            Visibility::Private => Self::Private,
            Visibility::Password => Self::Password,
        }
    }
}

impl From<VisibilityName> for Visibility {
    fn from(name: VisibilityName) -> Self {
        match name {
            VisibilityName::Public => Self::Public,
            VisibilityName::Private => Self::Private,
            VisibilityName::Password => Self::Password,
        }
    }
}
