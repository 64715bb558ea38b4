use std::sync::Arc;

use curt_core::ports::ListQuery;
use curt_core::{Clock, LinkState, OwnerId, RedirectStatus, Revision};
use curt_links::{EditLink, Expiry, LinkCreator, LinkError, NewLink, Who};

use crate::world::*;

const TARGET: &str = "https://example.com/";

fn retarget(target: &str) -> EditLink {
    EditLink {
        target: Some(target.into()),
        ..EditLink::default()
    }
}

#[tokio::test]
async fn owners_see_their_links_and_nobody_else_does_h14() {
    let world = World::new();
    let link = world.alias("a", TARGET).await.link;
    assert_eq!(world.links.get(own(ANN), "a").await.unwrap(), link);
    let strangers = [BOB.owner, OwnerId::ANONYMOUS];
    for stranger in strangers {
        let read = world.links.get(Who::Owner(stranger), "a").await;
        assert!(matches!(read, Err(LinkError::NotFound)));
        for seen in [None, Some(link.revision), Some(Revision::default())] {
            let edited = world.links.edit(
                Who::Owner(stranger),
                "a",
                seen,
                retarget("https://evil.example/"),
            );
            assert!(matches!(edited.await, Err(LinkError::NotFound)));
            let deleted = world.links.delete(Who::Owner(stranger), "a", seen).await;
            assert!(matches!(deleted, Err(LinkError::NotFound)));
        }
    }
    assert_eq!(world.links.get(own(ANN), "a").await.unwrap(), link);
    for key in ["absent", "", "a/b", "ä"] {
        assert!(matches!(
            world.links.get(own(ANN), key).await,
            Err(LinkError::NotFound)
        ));
    }
}

#[tokio::test]
async fn links_without_an_owner_are_managed_by_nobody() {
    let world = World::new();
    let new = NewLink {
        alias: Some("a".into()),
        ..new(TARGET)
    };
    let nobody = LinkCreator {
        owner: OwnerId::ANONYMOUS,
        made_with: None,
    };
    world.links.create(nobody, new, None).await.unwrap();
    let deleted = world
        .links
        .delete(Who::Owner(OwnerId::ANONYMOUS), "a", None)
        .await;
    assert!(matches!(deleted, Err(LinkError::NotFound)));
}

#[tokio::test]
async fn an_edit_changes_what_it_names_and_nothing_else() {
    let world = World::new();
    let before = NewLink {
        alias: Some("a".into()),
        title: Some("before".into()),
        tags: vec!["x".into()],
        ..expiring(TARGET, DAY)
    };
    let before = world.links.create(ANN, before, None).await.unwrap().link;
    world.clock.advance(DAY / 2);
    let now = world.clock.now();

    let titled = EditLink {
        title: Some(Some(" after ".into())),
        ..EditLink::default()
    };
    let after = world.links.edit(own(ANN), "a", None, titled).await.unwrap();
    assert_eq!(after.title.as_deref(), Some("after"));
    assert_eq!(after.revision, before.revision.edited());
    assert_eq!((after.created_at, after.updated_at), (START, now));
    assert_eq!(after.target, before.target);
    assert_eq!(after.tags, before.tags);
    assert_eq!(after.expires_at, before.expires_at);

    let rest = EditLink {
        target: Some("https://example.com/new".into()),
        title: Some(None),
        tags: Some(vec!["Y".into()]),
        expires_at: Some(Expiry::Never),
        valid_since: Some(Some(START)),
        status: Some(RedirectStatus::MovedPermanently),
        forward_query: Some(true),
        max_clicks: None,
        visibility: None,
        password_hash: None,
    };
    let after = world
        .links
        .edit(own(ANN), "a", Some(after.revision), rest)
        .await
        .unwrap();
    assert_eq!(after.target.as_str(), "https://example.com/new");
    assert_eq!(after.title, None);
    assert_eq!(after.tags, [Box::from("y")]);
    assert_eq!((after.expires_at, after.valid_since), (None, Some(START)));
    assert_eq!(after.status, RedirectStatus::MovedPermanently);
    assert!(after.forward_query);
    assert_eq!(world.stored("a").await, Some(after));
}

#[tokio::test]
async fn an_edit_passes_the_same_door_as_a_new_link() {
    let world = World::new();
    let new = NewLink {
        alias: Some("a".into()),
        ..expiring(TARGET, DAY)
    };
    world.links.create(ANN, new, None).await.unwrap();
    let wrong = EditLink {
        target: Some("javascript:alert(1)".into()),
        title: Some(Some("a\0".into())),
        tags: Some(vec!["a,b".into()]),
        expires_at: Some(Expiry::At(START)),
        ..EditLink::default()
    };
    let refused = world.links.edit(own(ANN), "a", None, wrong).await;
    assert_eq!(
        codes(refused),
        [
            "target_scheme",
            "title_control",
            "tag_symbols",
            "expiry_past"
        ]
    );
    let after_expiry = EditLink {
        valid_since: Some(Some(START.plus(DAY))),
        ..EditLink::default()
    };
    let refused = world.links.edit(own(ANN), "a", None, after_expiry).await;
    assert_eq!(codes(refused), ["valid_since_after_expiry"]);
}

#[tokio::test]
async fn a_stale_revision_changes_nothing() {
    let world = World::new();
    let first = world.alias("a", TARGET).await.link.revision;
    let edited = world.links.edit(
        own(ANN),
        "a",
        Some(first),
        retarget("https://example.com/2"),
    );
    let second = edited.await.unwrap().revision;
    let stale = world
        .links
        .edit(
            own(ANN),
            "a",
            Some(first),
            retarget("https://example.com/3"),
        )
        .await;
    assert!(matches!(stale, Err(LinkError::Stale(now)) if now == second));
    let stale = world.links.delete(own(ANN), "a", Some(first)).await;
    assert!(matches!(stale, Err(LinkError::Stale(now)) if now == second));
    let link = world.links.get(own(ANN), "a").await.unwrap();
    assert_eq!(link.target.as_str(), "https://example.com/2");
    world
        .links
        .delete(own(ANN), "a", Some(second))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_edit_without_a_revision_wins_against_changes_in_between() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let links = Arc::clone(&world.links);
    let edit = tokio::spawn(async move {
        links
            .edit(own(ANN), "a", None, retarget("https://example.com/2"))
            .await
    });
    world.store.paused(1).await;
    world.store.open_gate();
    let titled = EditLink {
        title: Some(Some("in between".into())),
        ..EditLink::default()
    };
    world.links.edit(own(ANN), "a", None, titled).await.unwrap();
    world.store.let_through(1);
    let link = edit.await.unwrap().unwrap();
    assert_eq!(link.target.as_str(), "https://example.com/2");
    assert_eq!(
        link.title.as_deref(),
        Some("in between"),
        "neither change is lost"
    );
}

/// The request's future is dropped while the store works on it; the store goes on, and so must the rest (L-2).
#[tokio::test]
async fn a_deletion_whose_client_went_away_is_seen_by_visitors_l2() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.slow_deletes();
    let links = Arc::clone(&world.links);
    let request = tokio::spawn(async move { links.delete(own(ANN), "a", None).await });
    world.store.delete_queued().await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    // A visitor in between makes a fresh copy of what is about to go.
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
    world.store.let_through(1);
    while world.stored("a").await.unwrap().state != LinkState::Tombstone {
        tokio::task::yield_now().await;
    }
    while world.cached("a").is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.resolve("a").await, DELETED);
}

#[tokio::test]
async fn a_deleted_link_is_not_found_any_more() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.links.delete(own(ANN), "a", None).await.unwrap();
    assert!(matches!(
        world.links.get(own(ANN), "a").await,
        Err(LinkError::NotFound)
    ));
    assert!(matches!(
        world.links.delete(own(ANN), "a", None).await,
        Err(LinkError::NotFound)
    ));
    let edited = world
        .links
        .edit(own(ANN), "a", None, retarget(TARGET))
        .await;
    assert!(matches!(edited, Err(LinkError::NotFound)));
}

#[tokio::test]
async fn lists_are_bounded_and_foreign_links_not_in_them() {
    let world = World::new();
    for n in 0..5 {
        world.alias(&format!("a{n}"), TARGET).await;
    }
    world.links.create(BOB, new(TARGET), None).await.unwrap();
    let query = |limit: usize| ListQuery {
        limit,
        ..ListQuery::default()
    };
    assert_eq!(
        world
            .links
            .list(own(ANN), query(usize::MAX))
            .await
            .unwrap()
            .links
            .len(),
        5
    );
    let page = world.links.list(own(ANN), query(0)).await.unwrap();
    assert_eq!(page.links.len(), 1, "a page has at least one");
    assert!(page.next.is_some());

    let bad_cursor = ListQuery {
        cursor: Some("nonsense".into()),
        ..query(10)
    };
    assert_eq!(
        codes(world.links.list(own(ANN), bad_cursor).await),
        ["cursor_invalid"]
    );
    let long_search = ListQuery {
        search: Some("x".repeat(201).into()),
        ..query(10)
    };
    assert_eq!(
        codes(world.links.list(own(ANN), long_search).await),
        ["search_too_long"]
    );
}
