//! Links as JSON: what clients send and what they get.

use std::fmt;

use curt_core::limits::{CLICKS_MAX, TAGS_MAX, TARGET_BYTES_MAX, TITLE_BYTES_MAX};
use curt_core::{EffectiveState, KeyOrigin, Link, OwnerId, RedirectStatus, Visibility};
use curt_links::{EditLink, Expiry, LinkDraft, LinkEdit, NewLink, NewPassword};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::body::{bounded_list_or_null, present};
use super::names::UserId;
use super::revision::tag;
use super::secret::Secret;
use super::time::Rfc3339;
use super::visibility::VisibilityName;
use crate::state::PublicUrl;

// The schemas below can hold only literal numbers.
const _: () = assert!(TARGET_BYTES_MAX == 8_192 && TITLE_BYTES_MAX == 512);
const _: () = assert!(TAGS_MAX == 32 && CLICKS_MAX == 1_000_000_000);

/// Tags that are read of one link: equal ones count as one, so that there may be a few more than a link can have.
const TAGS_READ_MAX: usize = 2 * TAGS_MAX;

/// A link to be made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLink)]
pub(crate) struct NewLinkBody {
    /// Where the link leads: an address, http or https unless the server allows other schemes, without user name or
    /// password, and not on this server. `example.com/page` is read as `https://example.com/page`.
    #[schema(
        pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://[^/\\?#@]|[^\s/\\?#@:]+\.[^\s/\\?#@:.])",
        max_length = 8192,
        example = "https://example.com/a/long/path?with=query"
    )]
    pub target: String,
    /// The key of your choice; a generated one without it. Case matters. Words that are routes of the server are
    /// reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$", example = "spring-sale")]
    pub alias: Option<String>,
    /// A name for your own lists; visitors do not see it. At most 512 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512, example = "Spring sale")]
    pub title: Option<String>,
    /// Words to find the link by; at most 32 of at most 64 bytes. Kept in lower case, with hyphens for spaces.
    #[serde(
        default,
        deserialize_with = "bounded_list_or_null::<TAGS_READ_MAX, _, _>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(max_items = 32, example = json!(["spring", "mail"]))]
    pub tags: Option<Vec<String>>,
    /// From this instant on the link answers 410. `null`: never.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<Rfc3339>)]
    pub expires_at: Option<Option<Rfc3339>>,
    /// Before this instant the link answers 404.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Rfc3339>)]
    pub valid_since: Option<Rfc3339>,
    /// The status that visitors get. Browsers remember 301 and 308.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_status: Option<RedirectCode>,
    /// Whether the visitor's query string is added to the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_query: Option<bool>,
    /// Who may follow the link; everybody unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<VisibilityName>,
    /// What visitors have to know, 1 to 256 bytes; with the visibility `password`, and only then.
    // Left out of what is serialised: the fingerprint of an `Idempotency-Key` is stored, and guesses at a password
    // could be tried on it quickly. Not `skip_serializing`, which would leave it out of the OpenAPI document, too.
    #[serde(serialize_with = "hide", skip_serializing_if = "is_hidden")]
    pub password: Option<Secret>,
    /// How many people may follow the link; then it answers 410. Programs, `HEAD` and what browsers fetch ahead do not
    /// count, and get 403 instead of the target. `null`: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000, example = 100)]
    pub max_clicks: Option<u64>,
}

impl From<NewLinkBody> for LinkDraft {
    fn from(body: NewLinkBody) -> Self {
        let link = NewLink {
            target: body.target,
            alias: body.alias,
            title: body.title,
            tags: body.tags.unwrap_or_default(),
            expires_at: body.expires_at.map_or(Expiry::Default, expiry),
            valid_since: body.valid_since.map(|at| at.0),
            status: body.redirect_status.map(|code| code.0),
            forward_query: body.forward_query,
            visibility: body.visibility.map(Visibility::from),
            password_hash: None,
            max_clicks: body.max_clicks,
        };
        Self {
            link,
            password: body.password.map(new_password),
        }
    }
}

/// Passwords are never serialised.
fn is_hidden(_: &Option<Secret>) -> bool {
    true
}

fn hide<S: Serializer>(_: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_none()
}

fn new_password(password: Secret) -> NewPassword {
    NewPassword(password.into_inner())
}

fn expiry(at: Option<Rfc3339>) -> Expiry {
    at.map_or(Expiry::Never, |at| Expiry::At(at.0))
}

/// Changes to a link. A field that is absent stays as it is; `null` clears it.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinkChanges)]
pub(crate) struct EditLinkBody {
    /// A new target, under the same rules as in a new link.
    #[serde(default, deserialize_with = "present")]
    #[schema(
        value_type = String,
        required = false,
        pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://[^/\\?#@]|[^\s/\\?#@:]+\.[^\s/\\?#@:.])",
        max_length = 8192,
        example = "https://example.com/another/path"
    )]
    pub target: Option<String>,
    /// `null`: no title.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, max_length = 512, example = "Summer sale")]
    pub title: Option<Option<String>>,
    /// All tags anew. `null`: no tags.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>, max_items = 32, example = json!(["summer"]))]
    pub tags: Option<Option<Vec<String>>>,
    /// `null`: never.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Rfc3339>)]
    pub expires_at: Option<Option<Rfc3339>>,
    /// `null`: valid at once.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Rfc3339>)]
    pub valid_since: Option<Option<Rfc3339>>,
    /// The status that visitors get.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = RedirectCode, required = false)]
    pub redirect_status: Option<RedirectCode>,
    /// Whether the visitor's query string is added to the target.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    pub forward_query: Option<bool>,
    /// Who may follow the link. Another one than `password` drops the link's password.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = VisibilityName, required = false)]
    pub visibility: Option<VisibilityName>,
    /// A new password, 1 to 256 bytes.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Secret>)]
    pub password: Option<Option<Secret>>,
    /// How many people may follow the link in all: a raised limit leaves the difference. `null`: any number.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1_000_000_000, example = 200)]
    pub max_clicks: Option<Option<u64>>,
}

impl From<EditLinkBody> for LinkEdit {
    fn from(body: EditLinkBody) -> Self {
        let link = EditLink {
            target: body.target,
            title: body.title,
            tags: body.tags.map(Option::unwrap_or_default),
            expires_at: body.expires_at.map(expiry),
            valid_since: body.valid_since.map(|at| at.map(|at| at.0)),
            status: body.redirect_status.map(|code| code.0),
            forward_query: body.forward_query,
            visibility: body.visibility.map(Visibility::from),
            password_hash: None,
            max_clicks: body.max_clicks,
        };
        Self {
            link,
            password: body.password.map(|new| new.map(new_password)),
        }
    }
}

/// A status that a link redirects with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedirectCode(pub RedirectStatus);

impl Serialize for RedirectCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0.code())
    }
}

impl<'de> Deserialize<'de> for RedirectCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Code;
        impl Visitor<'_> for Code {
            type Value = RedirectCode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("301, 302, 307 or 308")
            }

            fn visit_u64<E: serde::de::Error>(self, code: u64) -> Result<RedirectCode, E> {
                u16::try_from(code)
                    .ok()
                    .and_then(RedirectStatus::from_code)
                    .map(RedirectCode)
                    .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(code), &self))
            }
        }
        deserializer.deserialize_u16(Code)
    }
}

impl PartialSchema for RedirectCode {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .description(Some("The status of a redirect."))
            .enum_values(Some(RedirectStatus::ALL.map(RedirectStatus::code)))
            .examples([302])
            .into()
    }
}

impl ToSchema for RedirectCode {
    fn name() -> std::borrow::Cow<'static, str> {
        "RedirectStatus".into()
    }
}

/// What a link is now. `active`: it redirects. `scheduled`: it begins to later. `exhausted`: its clicks are used up.
/// `expired`: its time is over. `disabled`: an administrator switched it off. `deleted`: it can be restored. Of several
/// the last one in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LinkState)]
pub(crate) enum StateName {
    Active,
    Scheduled,
    Exhausted,
    Expired,
    Disabled,
    Deleted,
}

impl From<EffectiveState> for StateName {
    fn from(state: EffectiveState) -> Self {
        match state {
            EffectiveState::Active => Self::Active,
            EffectiveState::Scheduled => Self::Scheduled,
            EffectiveState::Exhausted => Self::Exhausted,
            EffectiveState::Expired => Self::Expired,
            EffectiveState::Disabled => Self::Disabled,
            EffectiveState::Deleted => Self::Deleted,
        }
    }
}

/// How a link is to be restored.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinkRestoration)]
pub(crate) struct RestoreBody {
    /// When the link is to expire. `null`: never. Absent: as before, or, if that is over, the server's default life from
    /// now on.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Rfc3339>)]
    expires_at: Option<Option<Rfc3339>>,
}

impl RestoreBody {
    pub(crate) fn expiry(&self) -> Option<Expiry> {
        self.expires_at.map(expiry)
    }
}

/// A link.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Link)]
pub(crate) struct LinkBody {
    /// The last part of the short URL.
    #[schema(example = "spring-sale")]
    pub key: String,
    /// What to give away.
    #[schema(format = "uri", example = "https://sho.rt/spring-sale")]
    pub short_url: String,
    /// Where it leads, as it is sent to browsers.
    #[schema(format = "uri", example = "https://example.com/a/long/path?with=query")]
    pub target: String,
    /// Whether the key was chosen as an alias.
    pub is_alias: bool,
    /// A name for your own lists.
    #[schema(required = true, example = "Spring sale")]
    pub title: Option<String>,
    /// In lower case, with hyphens for spaces.
    #[schema(example = json!(["spring", "mail"]))]
    pub tags: Vec<String>,
    pub state: StateName,
    /// When the link was made.
    pub created_at: Rfc3339,
    /// When it was last changed; of a deleted link, when it was deleted.
    pub updated_at: Rfc3339,
    /// From when on visitors get 410. `null`: never.
    #[schema(required = true)]
    pub expires_at: Option<Rfc3339>,
    /// Before this instant visitors get 404. `null`: from the start.
    #[schema(required = true)]
    pub valid_since: Option<Rfc3339>,
    /// The status that visitors get.
    pub redirect_status: RedirectCode,
    /// Whether the visitor's query string is added to the target.
    pub forward_query: bool,
    /// Who may follow the link.
    pub visibility: VisibilityName,
    /// How many people may follow the link. `null`: any number.
    #[schema(required = true)]
    pub max_clicks: Option<u64>,
    /// How many people followed the link, all in all, as far back as the server keeps counts; programs, `HEAD` and what
    /// browsers fetch ahead are not among them. May be behind by what the link's stats say of their lag. `null`: clicks are
    /// not counted, or cannot be read right now.
    #[schema(required = true, example = 7)]
    pub clicks: Option<u64>,
    /// Whose it is. `null`: it was made without credentials.
    #[schema(required = true)]
    pub owner_id: Option<UserId>,
    /// Changes with every edit; the text inside the ETag.
    #[schema(pattern = "^[0-9]+\\.[0-9]+$", example = "1.1")]
    pub revision: String,
}

impl LinkBody {
    pub(crate) fn new(
        link: &Link,
        state: EffectiveState,
        clicks: Option<u64>,
        public: &PublicUrl,
    ) -> Self {
        Self {
            key: link.id.key.as_str().to_owned(),
            short_url: public.short_url(link.id.key.as_str()),
            target: link.target.as_str().to_owned(),
            is_alias: link.origin == KeyOrigin::Alias,
            title: link.title.as_deref().map(str::to_owned),
            tags: link.tags.iter().map(|tag| tag.to_string()).collect(),
            state: state.into(),
            created_at: Rfc3339(link.created_at),
            updated_at: Rfc3339(link.updated_at),
            expires_at: link.expires_at.map(Rfc3339),
            valid_since: link.valid_since.map(Rfc3339),
            redirect_status: RedirectCode(link.status),
            forward_query: link.forward_query,
            visibility: link.visibility.into(),
            max_clicks: link.max_clicks,
            clicks,
            owner_id: (link.owner != OwnerId::ANONYMOUS).then_some(UserId(link.owner)),
            revision: tag(link.revision),
        }
    }
}

/// One page of links.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinkPage)]
pub(crate) struct PageBody {
    /// In the order asked for.
    pub links: Vec<LinkBody>,
    /// The cursor of the next page; `null` on the last one. A page may be short, even empty, and still have a next.
    #[schema(required = true, example = json!(null))]
    pub next: Option<String>,
}
