//! Who may follow a link: what is admitted, and what it does to the password and the status.

use curt_core::limits::CLICKS_MAX;
use curt_core::{ApiKeyNumber, OwnerId, RedirectStatus, Visibility};
use curt_links::{EditLink, LinkCreator, LinkSettings, NewLink, Who};

use crate::world::*;

const TARGET: &str = "https://example.com/";
const HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA";

fn visible(visibility: Visibility) -> NewLink {
    NewLink {
        alias: Some("a".into()),
        visibility: Some(visibility),
        password_hash: (visibility == Visibility::Password).then(|| HASH.into()),
        ..new(TARGET)
    }
}

fn changed(visibility: Visibility) -> EditLink {
    EditLink {
        visibility: Some(visibility),
        ..EditLink::default()
    }
}

#[tokio::test]
async fn a_link_is_public_unless_somebody_says_otherwise() {
    let world = World::new();
    let link = world.alias("a", TARGET).await.link;
    assert_eq!(link.visibility, Visibility::Public);
    assert_eq!(link.password_hash, None);
}

#[tokio::test]
async fn visibility_and_password_are_stored() {
    for visibility in [
        Visibility::Public,
        Visibility::Private,
        Visibility::Password,
    ] {
        let world = World::new();
        let new = visible(visibility);
        let hash = new.password_hash.clone();
        world.links.create(ANN, new, None).await.unwrap();
        let stored = world.stored("a").await.unwrap();
        assert_eq!(
            (stored.visibility, stored.password_hash),
            (visibility, hash)
        );
    }
}

#[tokio::test]
async fn password_and_visibility_go_together() {
    let world = World::new();
    let without = NewLink {
        password_hash: None,
        ..visible(Visibility::Password)
    };
    let refused = world.links.create(ANN, without, None).await;
    assert_eq!(codes(refused), ["password_missing"]);
    for visibility in [None, Some(Visibility::Public), Some(Visibility::Private)] {
        let unused = NewLink {
            visibility,
            password_hash: Some(HASH.into()),
            ..new(TARGET)
        };
        let refused = world.links.create(ANN, unused, None).await;
        assert_eq!(codes(refused), ["password_unused"], "{visibility:?}");
    }
}

#[tokio::test]
async fn an_edit_keeps_replaces_and_drops_the_password() {
    let world = World::new();
    world.alias("a", TARGET).await;
    let edit = |edit| world.links.edit(own(ANN), "a", None, edit);
    let given = |hash: Option<&str>| EditLink {
        password_hash: Some(hash.map(Into::into)),
        ..EditLink::default()
    };

    let refused = edit(changed(Visibility::Password)).await;
    assert_eq!(codes(refused), ["password_missing"]);
    let refused = edit(given(Some(HASH))).await;
    assert_eq!(codes(refused), ["password_unused"]);

    let both = EditLink {
        visibility: Some(Visibility::Password),
        ..given(Some(HASH))
    };
    assert_eq!(edit(both).await.unwrap().password_hash, Some(HASH.into()));
    let titled = EditLink {
        title: Some(Some("kept".into())),
        ..EditLink::default()
    };
    assert_eq!(edit(titled).await.unwrap().password_hash, Some(HASH.into()));
    assert_eq!(codes(edit(given(None)).await), ["password_missing"]);
    let other = edit(given(Some("other"))).await.unwrap();
    assert_eq!(other.password_hash, Some("other".into()));

    let private = edit(changed(Visibility::Private)).await.unwrap();
    assert_eq!(private.password_hash, None);
    assert_eq!(world.stored("a").await, Some(private));
    let refused = edit(changed(Visibility::Password)).await;
    assert_eq!(codes(refused), ["password_missing"], "the old one is gone");
}

#[tokio::test]
async fn browsers_are_not_told_to_remember_what_is_not_for_everybody() {
    let world = World::new();
    for visibility in [Visibility::Private, Visibility::Password] {
        for status in RedirectStatus::ALL {
            let new = NewLink {
                alias: None,
                status: Some(status),
                ..visible(visibility)
            };
            let made = world.links.create(ANN, new, None).await;
            if status.is_permanent() {
                assert_eq!(codes(made), ["redirect_status_permanent"]);
            } else {
                assert_eq!(made.unwrap().link.status, status);
            }
        }
    }

    let public = NewLink {
        status: Some(RedirectStatus::MovedPermanently),
        ..visible(Visibility::Public)
    };
    world.links.create(ANN, public, None).await.unwrap();
    let edit = |edit| world.links.edit(own(ANN), "a", None, edit);
    let refused = edit(changed(Visibility::Private)).await;
    assert_eq!(codes(refused), ["redirect_status_permanent"]);
    let both = EditLink {
        status: Some(RedirectStatus::Found),
        ..changed(Visibility::Private)
    };
    edit(both).await.unwrap();
    let permanent = EditLink {
        status: Some(RedirectStatus::PermanentRedirect),
        ..EditLink::default()
    };
    let refused = edit(permanent).await;
    assert_eq!(codes(refused), ["redirect_status_permanent"]);
}

#[tokio::test]
async fn a_limit_on_clicks_is_a_sensible_number_and_is_never_remembered_by_browsers() {
    let world = World::new();
    let limited = |most, status| NewLink {
        alias: None,
        max_clicks: Some(most),
        status,
        ..visible(Visibility::Public)
    };
    let create = |new| world.links.create(ANN, new, None);
    let made = create(limited(CLICKS_MAX, None)).await.unwrap();
    assert_eq!(made.link.max_clicks, Some(CLICKS_MAX));
    for most in [0, CLICKS_MAX + 1, u64::MAX] {
        let refused = create(limited(most, None)).await;
        assert_eq!(codes(refused), ["max_clicks_range"], "{most}");
    }
    let remembered = Some(RedirectStatus::MovedPermanently);
    let refused = create(limited(5, remembered)).await;
    assert_eq!(codes(refused), ["redirect_status_permanent"]);

    let edit = |edit| {
        world
            .links
            .edit(own(ANN), made.link.id.key.as_str(), None, edit)
    };
    let unlimited = EditLink {
        max_clicks: Some(None),
        status: remembered,
        ..EditLink::default()
    };
    assert_eq!(edit(unlimited).await.unwrap().max_clicks, None);
    let limited = EditLink {
        max_clicks: Some(Some(1)),
        ..EditLink::default()
    };
    assert_eq!(codes(edit(limited).await), ["redirect_status_permanent"]);
}

#[tokio::test]
async fn a_permanent_default_gives_way_where_it_must() {
    for (default, instead) in [
        (RedirectStatus::MovedPermanently, RedirectStatus::Found),
        (
            RedirectStatus::PermanentRedirect,
            RedirectStatus::TemporaryRedirect,
        ),
        (RedirectStatus::Found, RedirectStatus::Found),
    ] {
        let world = World::with(Plan {
            links: LinkSettings {
                default_status: default,
                ..LinkSettings::default()
            },
            ..Plan::default()
        });
        let private = visible(Visibility::Private);
        let private = world.links.create(ANN, private, None).await.unwrap();
        assert_eq!(private.link.status, instead);
        let limited = NewLink {
            max_clicks: Some(5),
            ..new(TARGET)
        };
        let limited = world.links.create(ANN, limited, None).await.unwrap();
        assert_eq!(limited.link.status, instead);
        assert_eq!(world.alias("b", TARGET).await.link.status, default);
    }
}

#[tokio::test]
async fn every_mistake_is_told_at_once() {
    let world = World::new();
    let wrong = NewLink {
        target: "ftp://example.com/".into(),
        password_hash: None,
        status: Some(RedirectStatus::MovedPermanently),
        ..visible(Visibility::Password)
    };
    assert_eq!(
        codes(world.links.create(ANN, wrong, None).await),
        [
            "target_scheme",
            "password_missing",
            "redirect_status_permanent"
        ]
    );
}

#[tokio::test]
async fn a_link_remembers_the_key_that_made_it() {
    let world = World::new();
    let key = Some(ApiKeyNumber(7));
    let by = LinkCreator {
        made_with: key,
        ..ANN
    };
    let new = || NewLink {
        alias: Some("a".into()),
        ..new(TARGET)
    };
    world.links.create(by, new(), None).await.unwrap();
    assert_eq!(world.stored("a").await.unwrap().made_with, key);
    let titled = EditLink {
        title: Some(Some("edited".into())),
        ..EditLink::default()
    };
    let edited = world.links.edit(own(ANN), "a", None, titled).await.unwrap();
    assert_eq!(edited.made_with, key);

    let many = vec![visible(Visibility::Private), crate::world::new(TARGET)];
    let made = world.links.create_many(by, many, None).await.unwrap();
    assert_eq!(made[1].as_ref().unwrap().link.made_with, key);
    assert_eq!(world.alias("b", TARGET).await.link.made_with, None);
}

#[tokio::test]
async fn a_link_that_nobody_owns_cannot_be_private() {
    let world = World::new();
    let nobody = LinkCreator {
        owner: OwnerId::ANONYMOUS,
        made_with: None,
    };
    let refused = world
        .links
        .create(nobody, visible(Visibility::Private), None);
    assert_eq!(codes(refused.await), ["visibility_unowned"]);
    let with_password = visible(Visibility::Password);
    let made = world.links.create(nobody, with_password, None).await;
    assert!(made.is_ok());
    let refused = world
        .links
        .edit(Who::Anybody, "a", None, changed(Visibility::Private));
    assert_eq!(codes(refused.await), ["visibility_unowned"]);
}
