use std::collections::HashSet;
use std::time::Duration;

use curt_accounts::{AccountError, InviteRef, NewUser, Origin, SignUp, UserRef};
use curt_core::ports::Users as _;
use curt_core::{ErrorKind, Role};

use crate::world::{HOUR, ORIGIN, World, mistakes, person};

#[tokio::test]
async fn the_setting_says_who_may_come() {
    for (sign_up, without_code, with_code) in [
        (SignUp::Closed, false, false),
        (SignUp::Invite, false, true),
        (SignUp::Open, true, true),
    ] {
        let world = World::with(sign_up);
        world.admin("ann@example.com").await;
        let users = &world.accounts.users;
        let code = users.invite(Role::Member, HOUR, ORIGIN).await.unwrap().code;
        let bare = users
            .sign_up(&person("bob@example.com"), None, ORIGIN)
            .await;
        assert_eq!(bare.is_ok(), without_code, "{sign_up:?}");
        let invited = users
            .sign_up(&person("cleo@example.com"), Some(&code), ORIGIN)
            .await;
        assert_eq!(invited.is_ok(), with_code, "{sign_up:?}");
    }
}

#[tokio::test]
async fn a_stranger_is_not_the_first_even_where_signing_up_is_open() {
    let world = World::with(SignUp::Open);
    let users = &world.accounts.users;
    users.ensure_operator().await.unwrap();
    let early = users
        .sign_up(&person("eve@example.com"), None, ORIGIN)
        .await;
    assert!(matches!(early, Err(AccountError::SignUpClosed)));
    world.admin("ann@example.com").await;
    let user = users
        .sign_up(&person("Eve@Example.com"), None, ORIGIN)
        .await
        .unwrap();
    assert_eq!((&*user.email, user.role), ("eve@example.com", Role::Member));
    assert_eq!(world.sign_in("EVE@example.com").await.user.id, user.id);
}

#[tokio::test]
async fn an_invitation_is_used_once_and_gives_its_role() {
    let world = World::with(SignUp::Invite);
    let users = &world.accounts.users;
    let invited = users.invite(Role::Admin, HOUR, ORIGIN).await.unwrap();
    assert!(
        users
            .is_invited(InviteRef::Code(&invited.code))
            .await
            .unwrap()
    );
    let first = users
        .sign_up(&person("ann@example.com"), Some(&invited.code), ORIGIN)
        .await;
    assert_eq!(first.unwrap().role, Role::Admin);
    assert!(
        !users
            .is_invited(InviteRef::Code(&invited.code))
            .await
            .unwrap()
    );
    for code in [&*invited.code, "", "guess"] {
        let again = users
            .sign_up(&person("bob@example.com"), Some(code), ORIGIN)
            .await;
        assert!(matches!(again, Err(AccountError::InviteInvalid)), "{code}");
    }
    let late = users.invite(Role::Member, HOUR, ORIGIN).await.unwrap().code;
    world.clock.advance(HOUR);
    let expired = users
        .sign_up(&person("bob@example.com"), Some(&late), ORIGIN)
        .await;
    assert!(matches!(expired, Err(AccountError::InviteInvalid)));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_show_one_invitation_one_comes_in() {
    let world = World::with(SignUp::Invite);
    let users = world.accounts.users.clone();
    let code = users.invite(Role::Member, HOUR, ORIGIN).await.unwrap().code;
    let racers: Vec<_> = (0..64)
        .map(|number| {
            let (users, code) = (users.clone(), code.clone());
            tokio::spawn(async move {
                let person = person(&format!("racer{number}@example.com"));
                users.sign_up(&person, Some(&code), ORIGIN).await.is_ok()
            })
        })
        .collect();
    let mut winners = 0;
    for racer in racers {
        winners += u32::from(racer.await.unwrap());
    }
    assert_eq!(winners, 1);
    assert_eq!(users.list(None, 100).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_mistake_does_not_use_up_the_invitation() {
    let world = World::with(SignUp::Invite);
    world.member("ann@example.com").await;
    let users = &world.accounts.users;
    let code = users.invite(Role::Member, HOUR, ORIGIN).await.unwrap().code;
    let taken = users
        .sign_up(&person("ann@example.com"), Some(&code), ORIGIN)
        .await;
    assert!(matches!(taken, Err(AccountError::EmailTaken)));
    world.store.fail("add_user");
    users
        .sign_up(&person("bob@example.com"), Some(&code), ORIGIN)
        .await
        .unwrap_err();
    world.store.heal();
    users
        .sign_up(&person("bob@example.com"), Some(&code), ORIGIN)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_who_want_one_email_one_gets_it() {
    let world = World::with(SignUp::Open);
    world.admin("ann@example.com").await;
    let racers: Vec<_> = (0..64)
        .map(|racer| {
            let users = world.accounts.users.clone();
            // Each from elsewhere: one address may not have so many passwords hashed at once.
            let origin = Origin {
                actor: None,
                address: Some([192, 0, 2, racer].into()),
            };
            tokio::spawn(async move {
                match users
                    .sign_up(&person("Bob@example.com"), None, origin)
                    .await
                {
                    Ok(_) => 1,
                    Err(AccountError::EmailTaken) => 0,
                    Err(other) => panic!("{other}"),
                }
            })
        })
        .collect();
    let mut winners = 0;
    for racer in racers {
        winners += racer.await.unwrap();
    }
    assert_eq!(winners, 1);
    assert_eq!(world.accounts.users.list(None, 100).await.unwrap().len(), 2);
}

#[tokio::test]
async fn all_mistakes_are_told_at_once() {
    let world = World::new();
    let wrong = NewUser {
        first_name: " ".to_owned(),
        middle_name: Some("a\nb".to_owned()),
        last_name: "x".repeat(101),
        email: "nobody".to_owned(),
        password: "short".to_owned(),
    };
    let refused = world.accounts.users.add(&wrong, Role::Member, ORIGIN).await;
    assert_eq!(
        mistakes(refused),
        [
            ("first_name", "required"),
            ("middle_name", "control_character"),
            ("last_name", "too_long"),
            ("email", "not_an_email"),
            ("password", "too_short"),
        ]
    );
    let mut same = person("someone@example.com");
    same.password = "Someone@example.com".to_owned();
    let refused = world.accounts.users.add(&same, Role::Member, ORIGIN).await;
    assert_eq!(mistakes(refused), [("password", "is_email")]);
    assert_eq!(world.store.calls("add_user"), 0);
}

#[tokio::test]
async fn ids_are_distinct_grow_with_time_and_fit_every_engine() {
    let world = World::new();
    let mut ids = Vec::new();
    for number in 0..50 {
        world.clock.advance(Duration::from_millis(number % 3));
        ids.push(world.member(&format!("user{number}@example.com")).await.id);
    }
    assert!(ids.is_sorted());
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    assert!(
        ids.iter()
            .all(|id| i64::try_from(id.0).is_ok_and(|id| id > 0))
    );
    world.store.refuse(3);
    let after = world.member("late@example.com").await;
    assert!(after.id > ids[49], "a taken id is tried again");
    world.store.refuse(100);
    let users = &world.accounts.users;
    let given_up = users
        .add(&person("never@example.com"), Role::Member, ORIGIN)
        .await;
    assert!(
        matches!(given_up, Err(AccountError::Store(failure)) if failure.kind == ErrorKind::Bug)
    );
    let found = users
        .get(UserRef::Email(" LATE@example.com "))
        .await
        .unwrap();
    assert_eq!(found.id, after.id);
    assert!(world.store.inner.user(after.id).await.unwrap().is_some());
}
