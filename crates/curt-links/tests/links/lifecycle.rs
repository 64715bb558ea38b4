//! Expired and deleted links in their grace period: kept for their owners, gone for visitors.

use std::time::Duration;

use curt_core::ports::ListQuery;
use curt_core::{EffectiveState, Link, LinkState, OwnerId, Visibility};
use curt_links::{
    AliasHolder, EditLink, Expiry, LinkCreator, LinkError, LinkSettings, NewLink, PurgeSettings,
    Resolution, ResolverSettings, Who,
};
use tokio_util::sync::CancellationToken;

use crate::world::*;

const TARGET: &str = "https://example.com/";
const GRACE: Duration = DAY.saturating_mul(30);

fn world() -> World {
    let own = Plan::default();
    World::with(Plan {
        links: LinkSettings {
            grace: GRACE,
            ..own.links
        },
        resolver: ResolverSettings {
            grace: GRACE,
            ..own.resolver
        },
        ..own
    })
}

fn purge_settings() -> PurgeSettings {
    PurgeSettings {
        grace: GRACE,
        ..PurgeSettings::default()
    }
}

fn full(alias: &str) -> NewLink {
    NewLink {
        alias: Some(alias.into()),
        title: Some("Title".into()),
        tags: vec!["red".into()],
        visibility: Some(Visibility::Password),
        password_hash: Some("hash".into()),
        ..new(TARGET)
    }
}

async fn state(world: &World, key: &str) -> EffectiveState {
    let link = world.links.get(own(ANN), key).await.unwrap();
    world.links.effective_states(&[link]).await.unwrap()[0]
}

async fn listed(world: &World, state: Option<EffectiveState>) -> Vec<String> {
    let query = ListQuery {
        state,
        limit: 10,
        ..ListQuery::default()
    };
    let page = world.links.list(own(ANN), query).await.unwrap();
    page.links
        .iter()
        .map(|link| link.id.key.to_string())
        .collect()
}

#[tokio::test]
async fn a_deleted_link_is_gone_for_visitors_and_comes_back_whole_l2() {
    let world = world();
    let made = world.links.create(ANN, full("a"), None).await.unwrap().link;
    world.clock.set(START.plus(DAY));
    world.links.delete(own(ANN), "a", None).await.unwrap();
    assert_eq!(world.resolve("a").await, DELETED);
    assert_eq!(state(&world, "a").await, EffectiveState::Deleted);
    assert!(listed(&world, None).await.is_empty());
    assert_eq!(listed(&world, Some(EffectiveState::Deleted)).await, ["a"]);
    let edit = EditLink {
        title: Some(None),
        ..EditLink::default()
    };
    let edited = world.links.edit(own(ANN), "a", None, edit).await;
    assert!(matches!(edited, Err(LinkError::Deleted)));
    let again = world.links.delete(own(ANN), "a", None).await;
    assert!(matches!(again, Err(LinkError::Deleted)));
    for stranger in [own(BOB), Who::Owner(OwnerId::ANONYMOUS)] {
        let restored = world.links.restore(stranger, "a", None, None).await;
        assert!(matches!(restored, Err(LinkError::NotFound)));
    }
    let restored = world
        .links
        .restore(own(ANN), "a", None, None)
        .await
        .unwrap();
    let want = Link {
        revision: made.revision.edited().edited(),
        updated_at: START.plus(DAY),
        ..made
    };
    assert_eq!(restored, want);
    assert_eq!(world.stored("a").await, Some(want));
    assert!(matches!(world.resolve("a").await, Resolution::Guarded(_)));
}

#[tokio::test]
async fn a_link_that_was_switched_off_is_restored_switched_off() {
    let world = world();
    for key in ["before", "meanwhile", "on"] {
        world.alias(key, TARGET).await;
    }
    world.links.disable("before").await.unwrap();
    world.links.disable("on").await.unwrap();
    for key in ["before", "meanwhile", "on"] {
        world.links.delete(own(ANN), key, None).await.unwrap();
    }
    let deleted_at = world.stored("meanwhile").await.unwrap().updated_at;
    world.clock.advance(DAY);
    world.links.disable("meanwhile").await.unwrap();
    world.links.enable("on").await.unwrap();
    let switched = world.stored("meanwhile").await.unwrap();
    assert_eq!(switched.updated_at, deleted_at, "the grace period goes on");
    for (key, want) in [
        ("before", LinkState::Disabled),
        ("meanwhile", LinkState::Disabled),
        ("on", LinkState::Active),
    ] {
        assert_eq!(world.resolve(key).await, DELETED, "{key}");
        let link = world.links.restore(own(ANN), key, None, None).await;
        assert_eq!(link.unwrap().state, want, "{key}");
    }
    assert_eq!(world.resolve("before").await, DISABLED);
    assert_eq!(location(&world.resolve("on").await), Some(TARGET));
}

#[tokio::test]
async fn an_expired_link_is_renewed_by_edit_and_by_restoring() {
    let world = world();
    for key in ["edited", "restored", "forever", "deleted"] {
        let new = NewLink {
            alias: Some(key.into()),
            ..expiring(TARGET, DAY)
        };
        world.links.create(ANN, new, None).await.unwrap();
    }
    world.links.delete(own(ANN), "deleted", None).await.unwrap();
    world.clock.set(START.plus(DAY * 2));
    assert_eq!(world.resolve("edited").await, EXPIRED);
    assert_eq!(state(&world, "edited").await, EffectiveState::Expired);
    assert_eq!(
        listed(&world, None).await.len(),
        3,
        "expired ones are listed"
    );

    let later = START.plus(DAY * 3);
    let edit = EditLink {
        expires_at: Some(Expiry::At(later)),
        ..EditLink::default()
    };
    world
        .links
        .edit(own(ANN), "edited", None, edit)
        .await
        .unwrap();
    let restore = async |key, expiry| {
        let link = world.links.restore(own(ANN), key, None, expiry).await;
        link.unwrap().expires_at
    };
    let default_life = START.plus(DAY * 2 + DAY * 730);
    assert_eq!(restore("restored", None).await, Some(default_life));
    assert_eq!(restore("deleted", None).await, Some(default_life));
    assert_eq!(restore("forever", Some(Expiry::Never)).await, None);
    assert_eq!(restore("edited", None).await, Some(later), "nothing to do");
    for key in ["edited", "restored", "forever", "deleted"] {
        assert_eq!(location(&world.resolve(key).await), Some(TARGET), "{key}");
    }
    let past = world
        .links
        .restore(own(ANN), "edited", None, Some(Expiry::At(START)));
    assert_eq!(codes(past.await), ["expiry_past"]);
}

#[tokio::test(start_paused = true)]
async fn links_are_purged_after_their_grace_period_and_not_before_b11() {
    for (scheduled, on_access) in [(true, false), (false, true)] {
        let world = world();
        let expiring = NewLink {
            alias: Some("expired".into()),
            ..expiring(TARGET, DAY)
        };
        world.links.create(ANN, expiring, None).await.unwrap();
        world.alias("deleted", TARGET).await;
        world.clock.set(START.plus(DAY));
        world.links.delete(own(ANN), "deleted", None).await.unwrap();
        let stop = CancellationToken::new();
        let purger = world.purger(PurgeSettings {
            scheduled,
            on_access,
            ..purge_settings()
        });
        let running = tokio::spawn(purger.run(stop.clone()));
        for (at, want) in [
            (DAY + GRACE - Duration::from_millis(1), None),
            (DAY + GRACE, Some(LinkState::Tombstone)),
        ] {
            world.clock.set(START.plus(at));
            world.resolver.invalidate_all();
            for key in ["expired", "deleted"] {
                let gone = world.resolve(key).await;
                assert!(matches!(gone, Resolution::Gone(_)), "{gone:?}");
            }
            tokio::time::sleep(Duration::from_secs(120)).await;
            for key in ["expired", "deleted"] {
                let state = world.stored(key).await.unwrap().state;
                let purged = Some(state).filter(|state| *state == LinkState::Tombstone);
                assert_eq!(purged, want, "{key}, scheduled: {scheduled}");
                let seen = world.links.get(own(ANN), key).await;
                assert_eq!(seen.is_ok(), want.is_none(), "{key}");
            }
        }
        stop.cancel();
        running.await.unwrap();
    }
}

/// To strangers a taken alias is taken, whatever has become of its link.
#[tokio::test]
async fn a_refused_alias_says_which_of_ones_own_links_has_it() {
    let world = world();
    let anonymous = LinkCreator {
        owner: OwnerId::ANONYMOUS,
        made_with: None,
    };
    for key in ["mine", "deleted", "purged"] {
        world.alias(key, TARGET).await;
    }
    let expiring = NewLink {
        alias: Some("expired".into()),
        ..expiring(TARGET, DAY)
    };
    world.links.create(ANN, expiring, None).await.unwrap();
    world.links.delete(own(ANN), "purged", None).await.unwrap();
    world.clock.set(START.plus(GRACE));
    world.links.delete(own(ANN), "deleted", None).await.unwrap();
    world.purger(purge_settings()).sweep(0).await.unwrap();
    for (key, want) in [
        ("mine", AliasHolder::Own(EffectiveState::Active)),
        ("deleted", AliasHolder::Own(EffectiveState::Deleted)),
        ("expired", AliasHolder::Own(EffectiveState::Expired)),
        ("purged", AliasHolder::OwnPurged),
    ] {
        let new = NewLink {
            alias: Some(key.into()),
            ..new(TARGET)
        };
        let same = async |by| match world.links.create(by, new.clone(), None).await {
            Err(LinkError::AliasTaken(holder)) => holder,
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!(same(ANN).await, want, "{key}");
        assert_eq!(same(BOB).await, AliasHolder::Another, "{key}");
        assert_eq!(same(anonymous).await, AliasHolder::Another, "{key}");
    }
}
