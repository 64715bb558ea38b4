use curt_accounts::{Origin, SignUp, UserEdit, UserRef};
use curt_core::names::audit;
use curt_core::{DomainId, Key, LinkId, Role, Scopes};

use crate::world::{HOUR, ORIGIN, PASSWORD, World, new_key, person};

async fn assert_audited(world: &World, expected: &[(&str, &str)]) {
    let written = world.audited().await;
    let shown: Vec<(&str, &str)> = written.iter().map(|(a, s)| (&**a, &**s)).collect();
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn what_people_do_is_written_down_with_who_and_where() {
    let world = World::with(SignUp::Invite);
    let users = &world.accounts.users;
    let setup = users.setup_token().await.unwrap().unwrap();
    let ann = users
        .set_up(&setup, &person("ann@example.com"), ORIGIN)
        .await
        .unwrap();
    let by_ann = ORIGIN.by(ann.id);
    let code = users.invite(Role::Member, HOUR, by_ann).await.unwrap().code;
    let bob = person("bob@example.com");
    let bob = users.sign_up(&bob, Some(&code), ORIGIN).await.unwrap();
    world
        .try_sign_in("bob@example.com", "wrong password")
        .await
        .unwrap_err();
    let session = world.sign_in("bob@example.com").await;
    users.sign_out(&session.token, ORIGIN).await.unwrap();
    let (by_bob, new) = (ORIGIN.by(bob.id), "another password");
    users
        .change_password(bob.id, PASSWORD, new, None, by_bob)
        .await
        .unwrap();
    let whom = UserRef::Id(bob.id);
    users
        .edit(whom, &UserEdit::default(), None, by_ann)
        .await
        .unwrap();
    users.disable(whom, by_ann).await.unwrap();
    users.enable(whom, by_ann).await.unwrap();
    let bob_id = bob.id.to_string();
    let expected = [
        (audit::SETUP_DONE, "ann@example.com"),
        (audit::INVITED, "member"),
        (audit::SIGNED_UP, "bob@example.com"),
        (audit::SIGN_IN_FAILED, "bob@example.com"),
        (audit::SIGNED_IN, "bob@example.com"),
        (audit::SIGNED_OUT, &bob_id),
        (audit::PASSWORD_CHANGED, "bob@example.com"),
        (audit::USER_CHANGED, "bob@example.com"),
        (audit::USER_DISABLED, "bob@example.com"),
        (audit::USER_ENABLED, "bob@example.com"),
    ];
    assert_audited(&world, &expected).await;
    let newest = world.accounts.audit.list(None, 1).await.unwrap();
    let (number, entry) = &newest[0];
    assert_eq!(entry.actor, Some(ann.id));
    assert_eq!(entry.address.as_deref(), Some("192.0.2.7"));
    let next = world.accounts.audit.list(Some(*number), 1).await.unwrap();
    assert_eq!(&*next[0].1.action, audit::USER_DISABLED);
}

#[tokio::test]
async fn what_is_done_with_keys_and_permissions_is_written_down() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let keys = &world.accounts.api_keys;
    let issued = world.key(&ann, "laptop").await;
    let old = &issued.key.prefix;
    let rotated = keys
        .rotate(old, None, HOUR, Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    keys.revoke(&rotated.key.prefix, None, Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    let link = LinkId::new(DomainId::DEFAULT, Key::parse("plan").unwrap());
    let permissions = &world.accounts.permissions;
    let granted = permissions
        .grant(&link, 1, UserRef::Id(ann.id), ORIGIN)
        .await
        .unwrap();
    permissions
        .revoke(&link, granted.permission.id, ORIGIN)
        .await
        .unwrap();
    let expected = [
        (audit::USER_ADDED, "ann@example.com"),
        (audit::API_KEY_ADDED, old),
        (audit::API_KEY_ROTATED, old),
        (audit::API_KEY_REVOKED, &rotated.key.prefix),
        (audit::PERMISSION_GRANTED, "plan ann@example.com"),
        (audit::PERMISSION_REVOKED, "plan 1"),
    ];
    assert_audited(&world, &expected).await;
}

#[tokio::test]
async fn an_audit_log_that_fails_does_not_hide_what_was_done() {
    let world = World::new();
    world.store.fail("record");
    let ann = world.admin("ann@example.com").await;
    let issued = world
        .accounts
        .api_keys
        .issue(new_key(&ann, "laptop"), Scopes::ALL, Origin::OPERATOR)
        .await
        .unwrap();
    assert!(world.is_key(&issued.token).await);
}

#[tokio::test]
async fn a_subject_that_somebody_typed_is_shortened() {
    let world = World::new();
    let typed = "ä".repeat(10_000);
    world.try_sign_in(&typed, PASSWORD).await.unwrap_err();
    let written = world.audited().await;
    assert_eq!(written[0].1, "ä".repeat(127));
}
