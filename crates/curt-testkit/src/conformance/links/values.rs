use anyhow::{Result, ensure};
use curt_core::limits::{TAG_BYTES_MAX, TAGS_MAX, TARGET_BYTES_MAX, TITLE_BYTES_MAX};
use curt_core::{
    ErrorKind, KeyOrigin, Link, LinkState, RedirectStatus, Revision, UnixMillis, Visibility,
};

use super::{Port, add, current_counts, stored};
use crate::conformance::{HOSTILE_TEXTS, same};
use crate::sample::{SampleWrites, full_link, id, link, target};

/// Stores the link and finds exactly it again.
async fn keeps(store: &Port, link: Link) -> Result<()> {
    add(store, [link.clone()]).await?;
    same("as stored", stored(store, &link.id).await?, link)
}

pub async fn every_field_is_kept(store: Port) -> Result<()> {
    keeps(&store, full_link("full")).await?;
    keeps(&store, link("plain")).await
}

pub async fn every_stored_word_is_kept(store: Port) -> Result<()> {
    for (n, origin) in KeyOrigin::ALL.into_iter().enumerate() {
        let link = link(&format!("origin{n}"));
        keeps(&store, Link { origin, ..link }).await?;
    }
    for status in RedirectStatus::ALL {
        let link = link(&format!("status{}", status.code()));
        keeps(&store, Link { status, ..link }).await?;
    }
    let all = [
        Visibility::Public,
        Visibility::Private,
        Visibility::Password,
    ];
    for (n, visibility) in all.into_iter().enumerate() {
        let link = link(&format!("visibility{n}"));
        keeps(&store, Link { visibility, ..link }).await?;
    }
    for state in [LinkState::Active, LinkState::Disabled] {
        let link = link(&format!("state{}", state as u8));
        keeps(&store, Link { state, ..link }).await?;
    }
    Ok(())
}

pub async fn keys_hold_every_symbol_and_length(store: Port) -> Result<()> {
    let symbols = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain("-_".chars());
    let mut keys: Vec<String> = symbols.map(String::from).collect();
    keys.push("....".to_owned());
    keys.push(".well_known-".to_owned());
    keys.extend((2..=64).map(|length| "k".repeat(length)));
    add(&store, keys.iter().map(|key| link(key))).await?;
    for key in &keys {
        same(key, stored(&store, &id(key)).await?, link(key))?;
    }
    Ok(())
}

pub async fn texts_are_kept_verbatim(store: Port) -> Result<()> {
    for (n, text) in HOSTILE_TEXTS.into_iter().enumerate() {
        let link = Link {
            title: Some(text.into()),
            tags: vec![text.into(), "plain".into(), text.to_uppercase().into()],
            password_hash: Some(text.into()),
            ..link(&format!("text{n}"))
        };
        keeps(&store, link).await?;
    }
    let hostile = "https://example.com/'%3B--%20\"%5C?a='&b=%25_#{}[]|^`~";
    let link = Link {
        target: target(hostile),
        title: Some("".into()),
        ..link("target")
    };
    keeps(&store, link).await?;
    same(
        "live",
        current_counts(&store).await?.live,
        HOSTILE_TEXTS.len() as u64 + 1,
    )
}

pub async fn the_longest_values_are_kept(store: Port) -> Result<()> {
    let path = "p".repeat(TARGET_BYTES_MAX - "https://a/".len());
    let tag = |n: usize| format!("{n:0TAG_BYTES_MAX$}").into_boxed_str();
    let link = Link {
        target: target(&format!("https://a/{path}")),
        title: Some("\u{fc}".repeat(TITLE_BYTES_MAX / 2).into()),
        tags: (0..TAGS_MAX).map(tag).collect(),
        ..link(&"k".repeat(64))
    };
    keeps(&store, link).await
}

pub async fn extreme_times_are_kept(store: Port) -> Result<()> {
    let times = [i64::MIN, -1, 0, 1, UnixMillis::MAX.0, i64::MAX];
    for (n, at) in times.map(UnixMillis).into_iter().enumerate() {
        let link = Link {
            created_at: at,
            updated_at: at,
            expires_at: Some(at),
            valid_since: Some(at),
            ..link(&format!("time{n}"))
        };
        keeps(&store, link).await?;
    }
    Ok(())
}

/// Engines without unsigned numbers may refuse what they cannot hold; none may change it.
pub async fn numbers_are_kept_or_refused(store: Port) -> Result<()> {
    let largest_revision = Revision {
        generation: u32::MAX,
        version: u32::MAX,
    };
    let link_with = |n: usize, max_clicks| Link {
        max_clicks: Some(max_clicks),
        revision: largest_revision,
        ..link(&format!("number{n}"))
    };
    for (n, clicks) in [0, 1, u64::MAX >> 1, u64::MAX].into_iter().enumerate() {
        let link = link_with(n, clicks);
        match store.insert(vec![link.clone()]).await {
            Ok(reply) => {
                same("reply", reply, vec![true])?;
                same("as stored", stored(&store, &link.id).await?, link)?;
            }
            Err(error) => {
                ensure!(clicks == u64::MAX, "{clicks} clicks were refused: {error}");
                same("kind of refusal", error.kind, ErrorKind::Invalid)?;
                same("not stored", store.get(&link.id).await?, None)?;
            }
        }
    }
    Ok(())
}
