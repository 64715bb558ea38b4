//! Links as lists show them.

use curt_core::{EffectiveState, Link, Visibility};
use url::form_urlencoded;

use super::PageTime;
use super::charts::grouped;
use super::shortened::shortened;
use crate::problem::Problem;
use crate::state::App;

/// What a list shows of a target, a title and the tags; the link's page has all of it.
const TEXT_BYTES_MAX: usize = 120;
const TAGS_MAX: usize = 8;

pub(super) struct LinkRow {
    pub(super) key: String,
    pub(super) short_url: String,
    /// Without the scheme, as people write it.
    pub(super) short: String,
    pub(super) title: String,
    pub(super) target: String,
    pub(super) tags: Vec<LinkTag>,
    pub(super) state: StateWords,
    /// Who may follow it, unless that is everybody.
    pub(super) audience: &'static str,
    pub(super) made: PageTime,
    /// `None`: not known now.
    pub(super) clicks: Option<String>,
}

/// A tag, and how it is written in an address.
pub(super) struct LinkTag {
    pub(super) name: String,
    pub(super) encoded: String,
}

impl LinkTag {
    #[expect(clippy::borrowed_box, reason = "links keep their tags so")]
    pub(super) fn new(tag: &Box<str>) -> Self {
        Self {
            name: tag.to_string(),
            encoded: form_urlencoded::byte_serialize(tag.as_bytes()).collect(),
        }
    }
}

/// A state as pages tell it.
pub(super) struct StateWords {
    /// The name of its colour.
    pub(super) class: &'static str,
    pub(super) word: &'static str,
    /// When it begins or ends, and the word before that.
    pub(super) when: Option<(&'static str, PageTime)>,
}

impl StateWords {
    pub(super) fn new(link: &Link, state: EffectiveState) -> Self {
        let expires = link.expires_at.map(PageTime::from);
        let (class, word, when) = match state {
            EffectiveState::Active => ("good", "Active", expires.map(|at| ("until", at))),
            EffectiveState::Scheduled => {
                let begins = link.valid_since.map(PageTime::from);
                ("wait", "Not yet active", begins.map(|at| ("from", at)))
            }
            EffectiveState::Exhausted => ("bad", "Used up", None),
            EffectiveState::Expired => ("bad", "Expired", expires.map(|at| ("since", at))),
            EffectiveState::Disabled => ("bad", "Switched off", None),
            EffectiveState::Deleted => {
                let deleted = PageTime::from(link.updated_at);
                ("bad", "Deleted", Some(("since", deleted)))
            }
        };
        Self { class, word, when }
    }
}

/// Who may follow a link, in words; nothing where that is everybody.
pub(super) fn audience(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::Public => "",
        Visibility::Private => "Private",
        Visibility::Password => "With password",
    }
}

/// The links as rows, in order. Asks once for all of them what they are now.
pub(super) async fn rows(
    app: &App,
    links: &[Link],
    clicks: Option<&[u64]>,
) -> Result<Vec<LinkRow>, Problem> {
    let states = app.links.effective_states(links).await?;
    let facts = links.iter().zip(states).enumerate();
    Ok(facts
        .map(|(at, (link, state))| {
            let clicks = clicks.and_then(|all| all.get(at));
            LinkRow::new(app, link, state, clicks.copied())
        })
        .collect())
}

impl LinkRow {
    fn new(app: &App, link: &Link, state: EffectiveState, clicks: Option<u64>) -> Self {
        let key = link.id.key.to_string();
        let short_url = app.public.short_url(&key);
        Self {
            short: without_scheme(&short_url).to_owned(),
            short_url,
            title: shortened(link.title.as_deref().unwrap_or_default(), TEXT_BYTES_MAX),
            target: shortened(link.target.as_str(), TEXT_BYTES_MAX),
            tags: link.tags.iter().take(TAGS_MAX).map(LinkTag::new).collect(),
            state: StateWords::new(link, state),
            audience: audience(link.visibility),
            made: link.created_at.into(),
            clicks: clicks.map(grouped),
            key,
        }
    }
}

pub(super) fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}
