use std::time::Duration;

use curt_accounts::{AccountError, EditPerson, Whom};
use curt_core::ports::QuotaRule;
use curt_core::{OwnerId, UnixMillis};

use crate::world::{ORIGIN, START, World, mistakes};

const ANN: &str = "ann@example.com";

#[tokio::test]
async fn an_edit_changes_what_it_names_and_nothing_else() {
    let world = World::new();
    let before = world.member(ANN).await;
    let people = &world.accounts.people;
    let rule = QuotaRule {
        amount: 5,
        period: Duration::from_secs(60),
    };
    let edit = EditPerson {
        middle_name: Some(Some("B.".to_owned())),
        creations: Some(Some(rule)),
        ..EditPerson::default()
    };
    let after = people
        .edit(Whom::Email(ANN), &edit, None, ORIGIN)
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
    let emptied = EditPerson {
        middle_name: Some(None),
        creations: Some(None),
        email: Some("Anna@Example.com".to_owned()),
        ..EditPerson::default()
    };
    let after = people
        .edit(Whom::Id(before.id), &emptied, None, ORIGIN)
        .await
        .unwrap();
    assert_eq!(
        (after.middle_name.as_deref(), after.allowance.creations),
        (None, None)
    );
    assert_eq!(&*after.email, "anna@example.com");
    world.sign_in("anna@example.com").await;
    let gone = people.get(Whom::Email(ANN)).await;
    assert!(matches!(gone, Err(AccountError::NotFound)));
}

#[tokio::test]
async fn an_edit_is_refused_when_stale_taken_or_wrong() {
    let world = World::new();
    let ann = world.member(ANN).await;
    world.member("bob@example.com").await;
    let people = &world.accounts.people;
    let to = |email: &str| EditPerson {
        email: Some(email.to_owned()),
        ..EditPerson::default()
    };
    let whom = Whom::Id(ann.id);
    let stale = people
        .edit(whom, &to("a@b.c"), Some(UnixMillis(1)), ORIGIN)
        .await;
    assert!(matches!(stale, Err(AccountError::Stale)));
    let taken = people
        .edit(whom, &to("BOB@example.com"), Some(ann.updated_at), ORIGIN)
        .await;
    assert!(matches!(taken, Err(AccountError::EmailTaken)));
    let wrong = EditPerson {
        first_name: Some(String::new()),
        ..to("nobody")
    };
    let refused = people.edit(whom, &wrong, None, ORIGIN).await;
    assert_eq!(
        mistakes(refused),
        [("first_name", "required"), ("email", "not_an_email")]
    );
    let absent = people
        .edit(Whom::Id(OwnerId(7)), &to("a@b.c"), None, ORIGIN)
        .await;
    assert!(matches!(absent, Err(AccountError::NotFound)));
    assert_eq!(people.get(whom).await.unwrap(), ann, "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_different_fields_at_once_all_count() {
    let world = World::new();
    let ann = world.member(ANN).await;
    let edits = [
        EditPerson {
            first_name: Some("New".to_owned()),
            ..EditPerson::default()
        },
        EditPerson {
            last_name: Some("Name".to_owned()),
            ..EditPerson::default()
        },
        EditPerson {
            middle_name: Some(Some("Middle".to_owned())),
            ..EditPerson::default()
        },
    ];
    let racers = edits.map(|edit| {
        let people = world.accounts.people.clone();
        tokio::spawn(async move { people.edit(Whom::Id(ann.id), &edit, None, ORIGIN).await })
    });
    for racer in racers {
        racer.await.unwrap().unwrap();
    }
    let after = world.accounts.people.get(Whom::Id(ann.id)).await.unwrap();
    assert_eq!((&*after.first_name, &*after.last_name), ("New", "Name"));
    assert_eq!(after.middle_name.as_deref(), Some("Middle"));
}

#[tokio::test]
async fn disabling_keeps_its_first_time_and_pages_go_on_where_they_ended() {
    let world = World::new();
    let ann = world.member(ANN).await;
    let bob = world.member("bob@example.com").await;
    let people = &world.accounts.people;
    people.disable(Whom::Id(ann.id), ORIGIN).await.unwrap();
    world.clock.advance(Duration::from_secs(5));
    let again = people.disable(Whom::Id(ann.id), ORIGIN).await.unwrap();
    assert_eq!(again.disabled_at, Some(START));
    let first = people.list(None, 1).await.unwrap();
    assert_eq!(first[0].id, ann.id);
    let rest = people.list(Some(ann.id), usize::MAX).await.unwrap();
    assert_eq!(rest[0].id, bob.id);
    assert_eq!(rest.len(), 1);
}
