use anyhow::Result;
use curt_core::ports::ListQuery;
use curt_core::{EffectiveState, Link, LinkState, OwnerId, Revision, UnixMillis};

use super::list::{ORDERS, found, keys, query};
use super::{Port, add, changed};
use crate::conformance::{HOSTILE_TEXTS, same};
use crate::sample::{NOW, OWNER, SampleWrites, id, later, link, target};

pub async fn filters_by_time(store: Port) -> Result<()> {
    let made = |key, at, state, expires_at| Link {
        created_at: UnixMillis(at),
        state,
        expires_at,
        ..link(key)
    };
    use LinkState::{Active, Disabled};
    let links = [
        made("a", -10, Active, None),
        made("b", 0, Disabled, Some(UnixMillis(5))),
        made("c", 10, Active, Some(UnixMillis(6))),
        made("d", 20, Active, Some(UnixMillis(-6))),
    ];
    add(&store, links).await?;
    let find = async |change: &dyn Fn(&mut ListQuery), want: &[&str]| {
        let mut query = query();
        change(&mut query);
        let got = found(&store, query.clone()).await?;
        same(&format!("{query:?}"), got, keys(want))
    };
    let at = |time| Some(UnixMillis(time));
    find(&|query| query.created_from = at(0), &["b", "c", "d"]).await?;
    find(&|query| query.created_before = at(10), &["a", "b"]).await?;
    let between = |query: &mut ListQuery| {
        (query.created_from, query.created_before) = (at(0), at(20));
    };
    find(&between, &["b", "c"]).await?;
    find(&|query| query.expires_before = at(6), &["b", "d"]).await?;
    find(
        &|query| query.expires_before = at(i64::MAX),
        &["b", "c", "d"],
    )
    .await?;
    find(&|query| query.expires_before = at(-6), &[]).await
}

/// Every link in every list, by whatever order or owner, and in one state only.
pub async fn filters_by_effective_state(store: Port) -> Result<()> {
    use EffectiveState::{Active, Deleted, Disabled, Exhausted, Expired, Scheduled};
    use LinkState as S;
    let made = |key, state, expires_at, valid_since, max_clicks| Link {
        state,
        expires_at,
        valid_since,
        max_clicks,
        ..link(key)
    };
    let (past, soon) = (Some(NOW), Some(later(9)));
    let links = [
        made("a", S::Active, soon, past, Some(2)),
        made("b", S::Active, None, None, None),
        made("c", S::Active, soon, Some(later(8)), None),
        made("d", S::Active, None, None, Some(1)),
        made("e", S::Active, None, soon, Some(0)),
        made("f", S::Active, past, None, None),
        made("g", S::Active, past, past, Some(0)),
        made("h", S::Disabled, past, None, Some(0)),
        made("i", S::Deleted, past, None, None),
        made("j", S::DeletedDisabled, None, None, None),
        made("k", S::Tombstone, None, None, None),
    ];
    add(&store, links).await?;
    for key in ["a", "d"] {
        store.spend_click(&id(key), Revision::FIRST).await?;
    }
    let wanted: [(Option<EffectiveState>, &[&str]); 7] = [
        (None, &["a", "b", "c", "d", "e", "f", "g", "h"]),
        (Some(Active), &["a", "b"]),
        (Some(Scheduled), &["c"]),
        (Some(Exhausted), &["d", "e"]),
        (Some(Expired), &["f", "g"]),
        (Some(Disabled), &["h"]),
        (Some(Deleted), &["i", "j"]),
    ];
    for order in ORDERS {
        for owner in [None, Some(OWNER)] {
            for (state, want) in wanted {
                let query = ListQuery {
                    state,
                    owner,
                    order,
                    now: later(1),
                    limit: 1,
                    ..query()
                };
                let got = found(&store, query.clone()).await?;
                same(&format!("{query:?}"), got, keys(want))?;
            }
        }
    }
    Ok(())
}

pub async fn filters_by_tags(store: Port) -> Result<()> {
    let tagged = |key, tags: &[&str]| Link {
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        ..link(key)
    };
    let links = [
        tagged("a", &["red", "Blue sky"]),
        tagged("b", &["RED"]),
        tagged("c", &["redder", "100%"]),
        tagged("d", &[]),
        tagged("e", &["a,b", "\"quoted\"", "['x']"]),
    ];
    add(&store, links).await?;
    for (tags, want) in [
        (vec!["red"], vec!["a", "b"]),
        (vec!["Red"], vec!["a", "b"]),
        (vec!["red", "blue SKY"], vec!["a"]),
        (vec!["blue"], vec![]),
        (vec!["redder", "red"], vec![]),
        (vec!["100%"], vec!["c"]),
        (vec!["%"], vec![]),
        (vec!["a,b"], vec!["e"]),
        (vec!["a"], vec![]),
        (vec!["\"QUOTED\"", "['X']"], vec!["e"]),
        (vec![""], vec![]),
    ] {
        let tags = tags.into_iter().map(Into::into).collect();
        let query = ListQuery { tags, ..query() };
        let what = format!("tags {:?}", query.tags);
        same(&what, found(&store, query).await?, keys(&want))?;
    }
    Ok(())
}

async fn search(store: &Port, text: &str, want: &[&str]) -> Result<()> {
    let search = Some(text.into());
    let got = found(store, ListQuery { search, ..query() }).await?;
    same(&format!("search {text:?}"), got, keys(want))
}

pub async fn searches_key_target_and_title(store: Port) -> Result<()> {
    let named = |key, at, title: Option<&str>| Link {
        target: target(at),
        title: title.map(Into::into),
        ..link(key)
    };
    let links = [
        named("Key-One", "https://a.example/Path?q=1", None),
        named("two", "https://b.example/", Some("The Keynote")),
        named("three", "https://c.example/", Some("\u{c4}pfel und Birnen")),
    ];
    add(&store, links).await?;
    search(&store, "key", &["Key-One", "two"]).await?;
    search(&store, "KEY-", &["Key-One"]).await?;
    search(&store, "PATH?Q=1", &["Key-One"]).await?;
    search(&store, "example", &["Key-One", "three", "two"]).await?;
    search(&store, "he keynot", &["two"]).await?;
    search(&store, "\u{c4}PFEL", &["three"]).await?;
    // Only ASCII is folded: what one engine's tables fold, another's do not.
    search(&store, "\u{e4}pfel", &[]).await?;
    search(&store, "absent", &[]).await?;
    search(&store, "", &["Key-One", "three", "two"]).await
}

pub async fn searches_literally(store: Port) -> Result<()> {
    for (n, text) in HOSTILE_TEXTS.into_iter().enumerate() {
        let title = Some(format!("before {text} after").into());
        add(
            &store,
            [Link {
                title,
                ..link(&format!("k{n:02}"))
            }],
        )
        .await?;
    }
    for (n, text) in HOSTILE_TEXTS.into_iter().enumerate() {
        search(&store, text, &[&format!("k{n:02}")]).await?;
    }
    for pattern in [
        "before%after",
        "b_fore",
        "*",
        "b?fore",
        ".*",
        "^before",
        "a_c",
    ] {
        search(&store, pattern, &[]).await?;
    }
    Ok(())
}

pub async fn filters_meet(store: Port) -> Result<()> {
    let made = |key, owner, tag: &str, at| Link {
        owner: OwnerId(owner),
        tags: vec![tag.into()],
        created_at: later(at),
        title: Some("shared title".into()),
        ..link(key)
    };
    let links = [
        made("a", 1, "x", 1),
        made("b", 2, "x", 2),
        made("c", 1, "y", 3),
        made("d", 1, "x", 4),
        made("e", 1, "x", 5),
    ];
    add(&store, links).await?;
    let query = ListQuery {
        owner: Some(OwnerId(1)),
        search: Some("SHARED".into()),
        tags: vec!["x".into()],
        state: Some(EffectiveState::Active),
        created_from: Some(later(1)),
        created_before: Some(later(5)),
        limit: 1,
        ..ListQuery::default()
    };
    for order in ORDERS {
        let got = found(
            &store,
            ListQuery {
                order,
                ..query.clone()
            },
        )
        .await?;
        same("all filters at once", got, keys(&["a", "d"]))?;
    }
    Ok(())
}

pub async fn a_filtered_walk_finds_all(store: Port) -> Result<()> {
    let made = |n: u64| Link {
        title: (n.is_multiple_of(97)).then(|| "needle".into()),
        created_at: later(n * 31 % 1_000),
        owner: if n.is_multiple_of(2) {
            OWNER
        } else {
            OwnerId(1)
        },
        ..link(&format!("k{n:04}"))
    };
    add(&store, (0..1_000).map(made)).await?;
    let want: Vec<String> = (0..1_000)
        .filter(|n: &u64| n.is_multiple_of(97) && n.is_multiple_of(2))
        .map(|n| format!("k{n:04}"))
        .collect();
    for order in ORDERS {
        for limit in [1, 3, 100] {
            let query = ListQuery {
                owner: Some(OWNER),
                search: Some("needle".into()),
                order,
                limit,
                ..ListQuery::default()
            };
            same("found", found(&store, query).await?, want.clone())?;
        }
    }
    Ok(())
}

pub async fn an_edited_link_is_listed_as_it_is(store: Port) -> Result<()> {
    let tagged = |tag: &str| Link {
        tags: vec![tag.into()],
        title: Some(format!("title {tag}").into()),
        ..link("a")
    };
    add(&store, [tagged("old")]).await?;
    changed(
        &store,
        store.update_at(tagged("new"), Revision::FIRST).await?,
    )
    .await?;
    let by_tag = |tag: &str| ListQuery {
        tags: vec![tag.into()],
        ..query()
    };
    same(
        "by the old tag",
        found(&store, by_tag("old")).await?,
        vec![],
    )?;
    same(
        "by the new tag",
        found(&store, by_tag("new")).await?,
        keys(&["a"]),
    )?;
    search(&store, "title old", &[]).await?;
    search(&store, "title new", &["a"]).await?;
    changed(&store, store.delete(&id("a"), NOW).await?).await?;
    same(
        "after its deletion",
        found(&store, by_tag("new")).await?,
        vec![],
    )?;
    search(&store, "title", &[]).await
}
