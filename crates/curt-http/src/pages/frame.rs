//! What every page has around its content: the bar with whoever is signed in, and how the installation looks.

use curt_core::Scope;

use super::assets::Assets;
use super::visitor::Visitor;
use crate::caller::Caller;
use crate::state::App;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) struct Frame {
    pub(super) name: Box<str>,
    pub(super) assets: Assets,
    pub(super) version: &'static str,
    /// Whoever is signed in.
    pub(super) user: Option<FrameUser>,
    /// Whether the browser may be signed in, and nobody looked.
    pub(super) was_not_asked: bool,
    /// Whether the visitor may make links with what they have shown; others are not offered it.
    pub(super) may_shorten: bool,
    /// The page that the bar marks as this one.
    here: &'static str,
}

pub(super) struct FrameUser {
    pub(super) name: String,
    /// The hidden field of forms that act for them.
    pub(super) csrf: String,
}

impl Frame {
    pub(super) fn new(app: &App, visitor: Option<&Visitor>) -> Self {
        let user = visitor.map(|visitor| FrameUser {
            name: visitor.name(),
            csrf: visitor.csrf.clone(),
        });
        let may_create = visitor.is_some_and(|visitor| visitor.may(Scope::Create));
        Self {
            name: app.settings.pages.name.clone(),
            assets: Assets::of(&app.settings.pages),
            version: VERSION,
            user,
            was_not_asked: false,
            may_shorten: may_create || app.settings.api.anonymous_create,
            here: "",
        }
    }

    /// The frame of a page that needs nobody to be signed in: a store that does not answer is no reason not to show it.
    pub(super) async fn of_caller(app: &App, caller: &Caller) -> Self {
        match Visitor::of(app, caller).await {
            Ok(visitor) => Self::new(app, visitor.as_ref()),
            Err(_) => Self::unknown(app, caller),
        }
    }

    /// The frame where looking up who is signed in would cost too much or tell too much.
    pub(super) fn unknown(app: &App, caller: &Caller) -> Self {
        Self {
            was_not_asked: caller.session_token().is_some(),
            ..Self::new(app, None)
        }
    }

    pub(super) fn at(mut self, path: &'static str) -> Self {
        self.here = path;
        self
    }

    /// Whether the bar marks the link to `path`.
    pub(super) fn current(&self, path: &str) -> bool {
        self.here == path
    }
}
