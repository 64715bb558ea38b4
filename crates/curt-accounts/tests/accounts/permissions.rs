use curt_accounts::{AccountError, CREDENTIAL_TTL, UserRef};
use curt_core::limits::PERMISSIONS_PER_LINK_MAX;
use curt_core::ports::Permissions as _;
use curt_core::{DomainId, Key, LinkId, OwnerId};

use crate::world::{CHEAP, ORIGIN, START, World};

fn link(key: &str) -> LinkId {
    LinkId::new(DomainId::DEFAULT, Key::parse(key).unwrap())
}

#[tokio::test]
async fn a_permission_is_for_one_user_one_link_and_one_generation() {
    let world = World::new();
    let bob = world.member("bob@example.com").await;
    let eve = world.member("eve@example.com").await;
    let permissions = &world.accounts.permissions;
    let plan = link("plan");
    let granted = permissions
        .grant(&plan, 1, UserRef::Email("Bob@example.com"), ORIGIN)
        .await;
    let granted = granted.unwrap();
    assert_eq!(granted.user.id, bob.id);
    for (user, link, generation, may) in [
        (bob.id, &plan, 1, true),
        (eve.id, &plan, 1, false),
        (bob.id, &link("other"), 1, false),
        (bob.id, &plan, 2, false),
    ] {
        assert_eq!(
            permissions
                .may_follow(user, link, generation)
                .await
                .unwrap(),
            may
        );
    }
    let again = permissions
        .grant(&plan, 1, UserRef::Id(bob.id), ORIGIN)
        .await
        .unwrap();
    assert_eq!(again, granted, "granting twice is granting once");
    assert_eq!(permissions.list(&plan, 1).await.unwrap(), [granted]);
    for nobody in [
        UserRef::Email("nobody@example.com"),
        UserRef::Id(OwnerId(7)),
    ] {
        let refused = permissions.grant(&plan, 1, nobody, ORIGIN).await;
        assert!(matches!(refused, Err(AccountError::NotFound)));
    }
}

#[tokio::test]
async fn a_change_counts_here_at_once_and_elsewhere_within_a_second() {
    let world = World::new();
    let bob = world.member("bob@example.com").await;
    let (here, plan) = (&world.accounts.permissions, link("plan"));
    let elsewhere = world.elsewhere(CHEAP).permissions;
    let may = async |service: &curt_accounts::Permissions| {
        service.may_follow(bob.id, &plan, 1).await.unwrap()
    };
    assert!(!may(here).await && !may(&elsewhere).await);
    let granted = here
        .grant(&plan, 1, UserRef::Id(bob.id), ORIGIN)
        .await
        .unwrap();
    assert!(may(here).await);
    world.clock.advance(CREDENTIAL_TTL);
    assert!(may(&elsewhere).await && may(here).await);
    let id = granted.permission.id;
    let foreign = here.revoke(&link("other"), id, ORIGIN).await;
    assert!(matches!(foreign, Err(AccountError::NotFound)));
    here.revoke(&plan, id, ORIGIN).await.unwrap();
    assert!(!may(here).await);
    world.clock.advance(CREDENTIAL_TTL);
    assert!(!may(&elsewhere).await);
    let again = here.revoke(&plan, id, ORIGIN).await;
    assert!(matches!(again, Err(AccountError::NotFound)));
}

#[tokio::test]
async fn decisions_are_repeated_for_a_second_and_failures_are_not() {
    let world = World::new();
    let bob = world.member("bob@example.com").await;
    let permissions = &world.accounts.permissions;
    let plan = link("plan");
    world.store.fail("may_follow");
    permissions.may_follow(bob.id, &plan, 1).await.unwrap_err();
    world.store.heal();
    for _ in 0..10 {
        permissions.may_follow(bob.id, &plan, 1).await.unwrap();
    }
    assert_eq!(world.store.calls("may_follow"), 2);
}

#[tokio::test]
async fn a_link_has_a_bounded_number_of_permissions() {
    let world = World::new();
    let bob = world.member("bob@example.com").await;
    let (permissions, plan) = (&world.accounts.permissions, link("plan"));
    for number in 1..=PERMISSIONS_PER_LINK_MAX as u64 {
        let user = OwnerId(number);
        world
            .store
            .inner
            .grant(user, &plan, 1, START)
            .await
            .unwrap();
    }
    let more = permissions
        .grant(&plan, 1, UserRef::Id(bob.id), ORIGIN)
        .await;
    assert!(matches!(more, Err(AccountError::TooMany)));
    permissions
        .grant(&plan, 2, UserRef::Id(bob.id), ORIGIN)
        .await
        .unwrap();
}
