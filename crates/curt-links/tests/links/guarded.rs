//! Links that need a decision at each visit, and links that are switched off: never answered from memory.

use std::sync::Arc;

use curt_core::ports::{LinkChange, LinkStore, SpendReply};
use curt_core::{
    ApiKeyNumber, Clock, ErrorKind, LimitedAccounts, Link, LinkState, OwnerId, Visibility,
};
use curt_links::{EditLink, LinkCreator, LinkError, NewLink, Resolution, ResolverSettings, Who};

use crate::world::*;

const TARGET: &str = "https://example.com/";
const KEY: ApiKeyNumber = ApiKeyNumber(7);

fn visible(visibility: Visibility) -> EditLink {
    EditLink {
        visibility: Some(visibility),
        password_hash: (visibility == Visibility::Password).then(|| Some("hash".into())),
        ..EditLink::default()
    }
}

fn users(users: &[OwnerId]) -> LimitedAccounts {
    LimitedAccounts {
        users: users.iter().copied().collect(),
        ..LimitedAccounts::default()
    }
}

fn is_guarded(resolution: &Resolution) -> bool {
    matches!(resolution, Resolution::Guarded(_))
}

#[tokio::test]
async fn a_guarded_link_is_loaded_for_every_click() {
    let world = World::new();
    world.alias("a", TARGET).await;
    for visibility in [Visibility::Private, Visibility::Password] {
        let edit = visible(visibility);
        let link = world.links.edit(own(ANN), "a", None, edit).await.unwrap();
        let gets = world.store.gets();
        for visit in 1..=3 {
            let guarded = Resolution::Guarded(Arc::new(link.clone()));
            assert_eq!(world.resolve("a").await, guarded);
            assert_eq!(world.cached("a"), None);
            assert_eq!(world.store.gets(), gets + visit);
        }
        assert_eq!(world.resolver.cache_size().0, 0);
    }
}

#[tokio::test]
async fn a_change_of_visibility_is_seen_at_once_d8() {
    let world = World::new();
    world.alias("a", TARGET).await;
    let edit = |to| world.links.edit(own(ANN), "a", None, visible(to));
    world.resolve("a").await;
    assert!(world.cached("a").is_some());
    edit(Visibility::Private).await.unwrap();
    assert_eq!(world.cached("a"), None);
    assert!(is_guarded(&world.resolve("a").await));
    edit(Visibility::Public).await.unwrap();
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
    assert!(world.cached("a").is_some());
}

#[tokio::test]
async fn a_reader_paused_over_the_change_does_not_serve_a_private_link_d4_d8() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let resolver = Arc::clone(&world.resolver);
    let slow = tokio::spawn(async move { resolver.resolve(named("a")).await });
    world.store.paused(1).await;
    world.store.open_gate();
    let private = visible(Visibility::Private);
    let edited = world.links.edit(own(ANN), "a", None, private).await;
    edited.unwrap();
    world.store.let_through(1);
    assert!(is_guarded(&slow.await.unwrap().unwrap()));
    assert_eq!(world.cached("a"), None);
}

#[tokio::test]
async fn a_guarded_link_still_expires_and_begins_like_any_other() {
    let world = World::new();
    let new = NewLink {
        alias: Some("a".into()),
        visibility: Some(Visibility::Private),
        valid_since: Some(START.plus(DAY)),
        ..expiring(TARGET, DAY * 2)
    };
    world.links.create(ANN, new, None).await.unwrap();
    assert_eq!(world.resolve("a").await, Resolution::Scheduled);
    world.clock.set(START.plus(DAY));
    assert_eq!(world.cached("a"), None, "not kept while it waited");
    assert!(is_guarded(&world.resolve("a").await));
    world.clock.set(START.plus(DAY * 2));
    assert_eq!(world.resolve("a").await, EXPIRED);
}

#[tokio::test]
async fn links_of_limited_accounts_are_guarded_from_then_on() {
    let world = World::new();
    world.alias("ann", TARGET).await;
    let new = |alias: &str| NewLink {
        alias: Some(alias.into()),
        ..new(TARGET)
    };
    world.links.create(BOB, new("bob"), None).await.unwrap();
    let by_key = LinkCreator {
        made_with: Some(KEY),
        ..BOB
    };
    world
        .links
        .create(by_key, new("by-key"), None)
        .await
        .unwrap();
    let nobody = LinkCreator {
        owner: OwnerId::ANONYMOUS,
        made_with: None,
    };
    world
        .links
        .create(nobody, new("nobody"), None)
        .await
        .unwrap();

    let everybody = LimitedAccounts {
        every_user: true,
        ..LimitedAccounts::default()
    };
    let every_key = LimitedAccounts {
        every_key: true,
        ..LimitedAccounts::default()
    };
    let one_key = LimitedAccounts {
        keys: [KEY].into(),
        ..LimitedAccounts::default()
    };
    for (accounts, guarded) in [
        (users(&[ANN.owner]), vec!["ann"]),
        (users(&[BOB.owner]), vec!["bob", "by-key"]),
        (one_key, vec!["by-key"]),
        (every_key, vec!["by-key"]),
        (everybody, vec!["ann", "bob", "by-key"]),
        (LimitedAccounts::default(), vec![]),
    ] {
        assert!(world.policy.limit(accounts.clone()));
        for key in ["ann", "bob", "by-key", "nobody"] {
            let resolution = world.resolve(key).await;
            let wanted = guarded.contains(&key);
            assert_eq!(is_guarded(&resolution), wanted, "{key}: {accounts:?}");
            assert_eq!(world.cached(key).is_none(), wanted, "{key}: {accounts:?}");
        }
    }
}

#[tokio::test]
async fn copies_stay_while_the_limited_accounts_do() {
    let world = World::new();
    world.alias("a", TARGET).await;
    assert!(world.policy.limit(users(&[BOB.owner])));
    world.resolve("a").await;
    assert!(!world.policy.limit(users(&[BOB.owner])));
    assert!(world.cached("a").is_some());
    assert!(world.policy.limit(users(&[BOB.owner, OwnerId(3)])));
    assert_eq!(world.cached("a"), None, "no copy from before a change");
}

#[tokio::test]
async fn a_reader_paused_over_a_new_limit_goes_by_it() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let resolver = Arc::clone(&world.resolver);
    let slow = tokio::spawn(async move { resolver.resolve(named("a")).await });
    world.store.paused(1).await;
    world.store.open_gate();
    world.policy.limit(users(&[ANN.owner]));
    world.store.let_through(1);
    assert!(is_guarded(&slow.await.unwrap().unwrap()));
    assert_eq!(world.cached("a"), None);
}

#[tokio::test]
async fn a_link_that_waits_for_its_hour_is_not_kept_when_it_is_limited() {
    let world = World::new();
    world.policy.limit(users(&[ANN.owner]));
    let new = NewLink {
        alias: Some("a".into()),
        valid_since: Some(START.plus(DAY)),
        ..new(TARGET)
    };
    world.links.create(ANN, new, None).await.unwrap();
    assert_eq!(world.resolve("a").await, Resolution::Scheduled);
    world.clock.set(START.plus(DAY));
    assert_eq!(world.cached("a"), None);
    assert!(is_guarded(&world.resolve("a").await));
}

#[tokio::test]
async fn a_disabled_link_is_gone_until_it_is_enabled() {
    let world = World::with(Plan {
        resolver: ResolverSettings {
            negative_ttl: DAY,
            ..ResolverSettings::default()
        },
        ..Plan::default()
    });
    let made = world.alias("a", TARGET).await.link;
    world.resolve("a").await;
    let off = world.links.disable("a").await.unwrap();
    assert_eq!(off.state, LinkState::Disabled);
    assert_eq!(off.revision, made.revision.edited());
    assert_eq!(world.cached("a"), None);
    assert_eq!(world.resolve("a").await, DISABLED);
    assert_eq!(world.links.disable("a").await.unwrap(), off, "done already");

    world.clock.advance(DAY);
    let on = world.links.enable("a").await.unwrap();
    assert_eq!(on.state, LinkState::Active);
    assert_eq!(on.updated_at, world.clock.now());
    assert_eq!(location(&world.resolve("a").await), Some(TARGET));
    assert_eq!(world.links.enable("a").await.unwrap(), on, "done already");
    for key in ["absent", "a/b"] {
        let missing = world.links.disable(key).await;
        assert!(matches!(missing, Err(LinkError::NotFound)));
    }
}

#[tokio::test]
async fn an_owner_cannot_switch_a_disabled_link_on() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.links.disable("a").await.unwrap();
    let edit = EditLink {
        target: Some("https://example.com/new".into()),
        ..visible(Visibility::Public)
    };
    let edited = world.links.edit(own(ANN), "a", None, edit).await.unwrap();
    assert_eq!(edited.state, LinkState::Disabled);
    assert_eq!(world.resolve("a").await, DISABLED);
    world.links.delete(own(ANN), "a", None).await.unwrap();
    let enabled = world.links.enable("a").await;
    assert!(
        matches!(enabled, Err(LinkError::NotFound)),
        "deleted is deleted"
    );
}

#[tokio::test]
async fn an_edit_under_way_does_not_undo_a_switch() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.store.shut_gate();
    let links = Arc::clone(&world.links);
    let slow = tokio::spawn(async move {
        let edit = visible(Visibility::Private);
        links.edit(own(ANN), "a", None, edit).await
    });
    world.store.paused(1).await;
    world.store.open_gate();
    world.links.disable("a").await.unwrap();
    world.store.let_through(1);
    let edited = slow.await.unwrap().unwrap();
    assert_eq!(edited.state, LinkState::Disabled);
    assert_eq!(edited.visibility, Visibility::Private);
}

#[tokio::test]
async fn administrators_reach_everybodys_links() {
    let world = World::new();
    let link = world.alias("a", TARGET).await.link;
    world.links.create(BOB, new(TARGET), None).await.unwrap();
    assert_eq!(world.links.get(Who::Anybody, "a").await.unwrap(), link);
    let all = |owner| curt_core::ports::ListQuery {
        owner,
        limit: 10,
        ..Default::default()
    };
    let count = async |who, owner| {
        let page = world.links.list(who, all(owner)).await.unwrap();
        page.links.len()
    };
    assert_eq!(count(Who::Anybody, None).await, 2);
    assert_eq!(count(Who::Anybody, Some(BOB.owner)).await, 1);
    assert_eq!(count(own(ANN), Some(BOB.owner)).await, 1, "her own one");
    assert_eq!(count(Who::Owner(OwnerId::ANONYMOUS), None).await, 0);
    let edit = visible(Visibility::Private);
    let edited = world.links.edit(Who::Anybody, "a", None, edit).await;
    assert_eq!(edited.unwrap().owner, ANN.owner);
    world.links.delete(Who::Anybody, "a", None).await.unwrap();
    assert_eq!(world.resolve("a").await, DELETED);
}

#[tokio::test]
async fn no_link_is_served_before_it_is_known_whose_are_limited() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.policy.await_limits();
    let id = world.stored("a").await.unwrap().id;
    let early = world.resolver.resolve(id.as_ref()).await.unwrap_err();
    assert_eq!(early.kind, ErrorKind::Unavailable);
    world.policy.limit(LimitedAccounts {
        users: [ANN.owner].into(),
        ..LimitedAccounts::default()
    });
    assert!(matches!(world.resolve("a").await, Resolution::Guarded(_)));
}

/// The link as a limit of `most` visits leaves it.
async fn limit_visits(world: &World, most: u64) -> Arc<Link> {
    let link = world.stored("a").await.unwrap();
    let seen = link.revision;
    let limited = Link {
        max_clicks: Some(most),
        ..link
    };
    let change = LinkChange::of(&limited);
    world.store.update_at(limited, seen).await.unwrap();
    world.resolver.invalidate(&[change]);
    match world.resolve("a").await {
        Resolution::Guarded(link) => link,
        other => panic!("a link with only so many visits is {other:?}"),
    }
}

#[tokio::test]
async fn a_link_grants_as_many_visits_as_it_has_and_only_those_that_count() {
    let world = World::new();
    world.alias("a", TARGET).await;
    world.resolve("a").await;
    let link = limit_visits(&world, 2).await;
    assert_eq!(world.cached("a"), None, "never from a copy");
    let spend = async |counts| world.resolver.spend(&link, counts).await.unwrap();
    assert_eq!(spend(false).await, SpendReply::Granted);
    assert_eq!(spend(true).await, SpendReply::Granted);
    assert_eq!(spend(false).await, SpendReply::Granted);
    assert_eq!(spend(true).await, SpendReply::Granted);
    assert_eq!(spend(true).await, SpendReply::Exhausted);
    assert_eq!(
        spend(false).await,
        SpendReply::Exhausted,
        "nothing is left to see"
    );
}

#[tokio::test]
async fn a_link_that_changed_on_the_way_is_looked_at_again() {
    let world = World::new();
    world.alias("a", TARGET).await;
    let link = limit_visits(&world, 2).await;
    let private = visible(Visibility::Private);
    let edited = world.links.edit(own(ANN), "a", None, private).await;
    edited.unwrap();
    let spent = world.resolver.spend(&link, true).await.unwrap();
    assert_eq!(spent, SpendReply::Stale);
}
