//! What every page has around its content: the bar with whoever is signed in, and how the installation looks.

use curt_core::{Role, Scope};

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
    /// The page that menu and bar mark as this one, or as the one that this belongs to.
    here: &'static str,
    /// Whether the page has tabs of its own, which mark it.
    is_within: bool,
}

pub(super) struct FrameUser {
    pub(super) name: String,
    /// The hidden field of forms that act for them.
    pub(super) csrf: String,
    is_admin: bool,
}

/// An entry of the menu.
pub(super) struct MenuEntry {
    pub(super) path: &'static str,
    pub(super) label: &'static str,
    /// Whether what follows is of another kind than what came before.
    pub(super) begins_group: bool,
}

const EVERYBODY: [(&str, &str); 5] = [
    ("/", "Home"),
    ("/links", "Links"),
    ("/clicks", "Clicks"),
    ("/tags", "Tags"),
    ("/account", "Account"),
];

/// The first of the administrators' pages, which lead to each other.
pub(super) const ADMINISTRATION: &str = "/admin/users";

impl FrameUser {
    /// The pages that they may open, in the order of the menu.
    pub(super) fn menu(&self) -> impl Iterator<Item = MenuEntry> {
        let administration = MenuEntry {
            path: ADMINISTRATION,
            label: "Administration",
            begins_group: true,
        };
        let everybodys = EVERYBODY.into_iter().map(|(path, label)| MenuEntry {
            path,
            label,
            begins_group: false,
        });
        everybodys.chain(self.is_admin.then_some(administration))
    }
}

impl Frame {
    pub(super) fn new(app: &App, visitor: Option<&Visitor>) -> Self {
        let user = visitor.map(|visitor| FrameUser {
            name: visitor.name(),
            csrf: visitor.csrf.clone(),
            is_admin: visitor.user.role == Role::Admin,
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
            is_within: false,
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

    /// For a page below `path`, whose own tabs say which of them it is.
    pub(super) fn within(self, path: &'static str) -> Self {
        Self {
            is_within: true,
            ..self.at(path)
        }
    }

    /// What `aria-current` of the link to `path` says, if it has one: `page` is said once on each page.
    pub(super) fn mark(&self, path: &str) -> Option<&'static str> {
        (self.here == path).then_some(if self.is_within { "true" } else { "page" })
    }
}
