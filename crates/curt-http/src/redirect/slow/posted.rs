use std::sync::Arc;

use curt_core::Link;

use crate::problem::Problem;
use crate::redirect::Resolved;

/// What a `POST` is about.
pub(super) enum Posted {
    /// The password of this link.
    Password(Arc<Link>),
    /// The target, whose it is to read the body.
    Forwarded(Resolved),
    Refused(Problem),
}
