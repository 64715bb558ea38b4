use std::time::Duration;

use curt_accounts::{AccountError, UserEdit, UserRef};
use curt_core::ports::QuotaRule;
use curt_core::{OwnerId, UnixMillis};

use crate::world::{ORIGIN, START, World, mistakes};

const ANN: &str = "ann@example.com";

#[tokio::test]
async fn an_edit_changes_what_it_names_and_nothing_else() {
    let world = World::new();
    let before = world.member(ANN).await;
    let users = &world.accounts.users;
    let rule = QuotaRule {
        amount: 5,
        period: Duration::from_secs(60),
    };
    let edit = UserEdit {
        middle_name: Some(Some("B.".to_owned())),
        creations: Some(Some(rule)),
        ..UserEdit::default()
    };
    let after = users
        .edit(UserRef::Email(ANN), &edit, None, ORIGIN)
        .await
        .unwrap();
    assert_eq!(after.middle_name.as_deref(), Some("B."));
    assert_eq!(after.allowance.creations, Some(rule));
    assert_eq!(after.password_hash, before.password_hash);
    assert_eq!(
        (&after.first_name, &after.email),
        (&before.first_name, &before.email)
    );
    assert!(after.updated_at > before.updated_at);
    let emptied = UserEdit {
        middle_name: Some(None),
        creations: Some(None),
        email: Some("Anna@Example.com".to_owned()),
        ..UserEdit::default()
    };
    let after = users
        .edit(UserRef::Id(before.id), &emptied, None, ORIGIN)
        .await
        .unwrap();
    assert_eq!(
        (after.middle_name.as_deref(), after.allowance.creations),
        (None, None)
    );
    assert_eq!(&*after.email, "anna@example.com");
    world.sign_in("anna@example.com").await;
    let gone = users.get(UserRef::Email(ANN)).await;
    assert!(matches!(gone, Err(AccountError::NotFound)));
}

#[tokio::test]
async fn an_edit_is_refused_when_stale_taken_or_wrong() {
    let world = World::new();
    let ann = world.member(ANN).await;
    world.member("bob@example.com").await;
    let users = &world.accounts.users;
    let to = |email: &str| UserEdit {
        email: Some(email.to_owned()),
        ..UserEdit::default()
    };
    let whom = UserRef::Id(ann.id);
    let stale = users
        .edit(whom, &to("a@b.c"), Some(UnixMillis(1)), ORIGIN)
        .await;
    assert!(matches!(stale, Err(AccountError::Stale)));
    let taken = users
        .edit(whom, &to("BOB@example.com"), Some(ann.updated_at), ORIGIN)
        .await;
    assert!(matches!(taken, Err(AccountError::EmailTaken)));
    let wrong = UserEdit {
        first_name: Some(String::new()),
        ..to("nobody")
    };
    let refused = users.edit(whom, &wrong, None, ORIGIN).await;
    assert_eq!(
        mistakes(refused),
        [("first_name", "required"), ("email", "not_an_email")]
    );
    let absent = users
        .edit(UserRef::Id(OwnerId(7)), &to("a@b.c"), None, ORIGIN)
        .await;
    assert!(matches!(absent, Err(AccountError::NotFound)));
    assert_eq!(users.get(whom).await.unwrap(), ann, "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_different_fields_at_once_all_count() {
    let world = World::new();
    let ann = world.member(ANN).await;
    let edits = [
        UserEdit {
            first_name: Some("New".to_owned()),
            ..UserEdit::default()
        },
        UserEdit {
            last_name: Some("Name".to_owned()),
            ..UserEdit::default()
        },
        UserEdit {
            middle_name: Some(Some("Middle".to_owned())),
            ..UserEdit::default()
        },
    ];
    let racers = edits.map(|edit| {
        let users = world.accounts.users.clone();
        tokio::spawn(async move { users.edit(UserRef::Id(ann.id), &edit, None, ORIGIN).await })
    });
    for racer in racers {
        racer.await.unwrap().unwrap();
    }
    let after = world.accounts.users.get(UserRef::Id(ann.id)).await.unwrap();
    assert_eq!((&*after.first_name, &*after.last_name), ("New", "Name"));
    assert_eq!(after.middle_name.as_deref(), Some("Middle"));
}

#[tokio::test]
async fn disabling_keeps_its_first_time_and_pages_go_on_where_they_ended() {
    let world = World::new();
    let ann = world.member(ANN).await;
    let bob = world.member("bob@example.com").await;
    let users = &world.accounts.users;
    users.disable(UserRef::Id(ann.id), ORIGIN).await.unwrap();
    world.clock.advance(Duration::from_secs(5));
    let again = users.disable(UserRef::Id(ann.id), ORIGIN).await.unwrap();
    assert_eq!(again.disabled_at, Some(START));
    let first = users.list(None, 1).await.unwrap();
    assert_eq!(first[0].id, ann.id);
    let rest = users.list(Some(ann.id), usize::MAX).await.unwrap();
    assert_eq!(rest[0].id, bob.id);
    assert_eq!(rest.len(), 1);
}
