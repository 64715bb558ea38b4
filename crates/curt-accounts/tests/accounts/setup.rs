use std::time::Duration;

use curt_accounts::{AccountError, InviteRef, OPERATOR_EMAIL, UserEdit, UserRef};
use curt_core::Role;

use crate::world::{CHEAP, HOUR, ORIGIN, World, new_key, person};

#[tokio::test]
async fn the_first_administrator_takes_over_the_operators_account() {
    let world = World::new();
    let users = &world.accounts.users;
    let operator = users.ensure_operator().await.unwrap();
    assert_eq!(
        (&*operator.email, operator.role),
        (OPERATOR_EMAIL, Role::Admin)
    );
    assert_eq!(
        users.ensure_operator().await.unwrap().id,
        operator.id,
        "once"
    );
    let token = world.key(&operator, "first").await.token;
    let setup = users.setup_token().await.unwrap().unwrap();
    assert!(users.is_setup_open(&setup).await.unwrap());
    let ann = users
        .set_up(&setup, &person("Ann@example.com"), ORIGIN)
        .await
        .unwrap();
    assert_eq!(
        ann.id, operator.id,
        "links and keys of the operator are theirs"
    );
    assert_eq!((&*ann.email, ann.role), ("ann@example.com", Role::Admin));
    assert!(world.is_key(&token).await);
    assert_eq!(world.sign_in("ann@example.com").await.user.id, ann.id);
    assert_eq!(users.operator().await.unwrap().unwrap().id, ann.id);
    assert_eq!(users.list(None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_setup_closes_for_ever_once_anybody_can_sign_in_h24() {
    let world = World::new();
    let users = &world.accounts.users;
    let setup = users.setup_token().await.unwrap().unwrap();
    let late = world.elsewhere(CHEAP);
    let late_token = late.users.setup_token().await.unwrap().unwrap();
    users
        .set_up(&setup, &person("ann@example.com"), ORIGIN)
        .await
        .unwrap();
    let eve = person("eve@example.com");
    for token in [&*setup, "", "guess"] {
        assert!(!users.is_setup_open(token).await.unwrap());
        let again = users.set_up(token, &eve, ORIGIN).await;
        assert!(matches!(again, Err(AccountError::SetupClosed)), "{token}");
    }
    // Another process holds a token that was good when it was made: the store decides.
    assert!(!late.users.is_setup_open(&late_token).await.unwrap());
    let elsewhere = late.users.set_up(&late_token, &eve, ORIGIN).await;
    assert!(matches!(elsewhere, Err(AccountError::SetupClosed)));
    assert_eq!(users.setup_token().await.unwrap(), None);
    assert_eq!(users.list(None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_user_added_by_command_closes_the_setup_too() {
    let world = World::new();
    let users = &world.accounts.users;
    let setup = users.setup_token().await.unwrap().unwrap();
    world.member("bob@example.com").await;
    let refused = users
        .set_up(&setup, &person("eve@example.com"), ORIGIN)
        .await;
    assert!(matches!(refused, Err(AccountError::SetupClosed)));
}

#[tokio::test]
async fn a_token_opens_the_setup_on_every_server_and_signs_nobody_up() {
    let world = World::new();
    let users = &world.accounts.users;
    let others = [world.elsewhere(CHEAP), world.elsewhere(CHEAP)];
    let setup = users.setup_token().await.unwrap().unwrap();
    others[0].users.setup_token().await.unwrap().unwrap();
    for other in &others {
        assert!(other.users.is_setup_open(&setup).await.unwrap());
        assert!(!other.users.is_setup_open("guess").await.unwrap());
        assert!(
            !other
                .users
                .is_invited(InviteRef::Code(&setup))
                .await
                .unwrap()
        );
    }
    let ann = person("ann@example.com");
    others[1].users.set_up(&setup, &ann, ORIGIN).await.unwrap();
    assert!(!users.is_setup_open(&setup).await.unwrap());
    let invited = users.invite(Role::Member, HOUR, ORIGIN).await.unwrap();
    let open = users.invites().await.unwrap();
    let ends: Vec<_> = open.invites.iter().map(|open| open.expires_at).collect();
    assert_eq!(ends, [invited.expires_at], "tokens are no invitations");
}

#[tokio::test]
async fn a_mistake_leaves_the_setup_open_and_an_old_token_ends() {
    let world = World::new();
    let users = &world.accounts.users;
    let old = users.setup_token().await.unwrap().unwrap();
    world.clock.advance(Duration::from_secs(7 * 24 * 3_600));
    let setup = users.setup_token().await.unwrap().unwrap();
    let ann = person("ann@example.com");
    let refused = users.set_up(&old, &ann, ORIGIN).await;
    assert!(matches!(refused, Err(AccountError::SetupClosed)));
    let wrong = users.set_up(&setup, &person("nobody"), ORIGIN).await;
    assert!(matches!(wrong, Err(AccountError::Invalid(_))));
    world.store.fail("anybody_can_sign_in");
    users.set_up(&setup, &ann, ORIGIN).await.unwrap_err();
    world.store.heal();
    users.set_up(&setup, &ann, ORIGIN).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raced_setup_has_one_winner() {
    for _ in 0..5 {
        let world = World::new();
        let users = world.accounts.users.clone();
        let setup = users.setup_token().await.unwrap().unwrap();
        let racers: Vec<_> = (0..64)
            .map(|number| {
                let (users, setup) = (users.clone(), setup.clone());
                tokio::spawn(async move {
                    let person = person(&format!("racer{number}@example.com"));
                    users.set_up(&setup, &person, ORIGIN).await.is_ok()
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
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_race_for_one_operator_have_one_winner() {
    for _ in 0..10 {
        let world = World::new();
        let mut processes = Vec::new();
        for _ in 0..8 {
            let process = world.elsewhere(CHEAP);
            let setup = process.users.setup_token().await.unwrap().unwrap();
            processes.push((process, setup));
        }
        let racers = processes.into_iter().enumerate();
        let racers: Vec<_> = racers
            .map(|(number, (process, setup))| {
                tokio::spawn(async move {
                    let person = person(&format!("racer{number}@example.com"));
                    process.users.set_up(&setup, &person, ORIGIN).await.is_ok()
                })
            })
            .collect();
        let mut winners = 0;
        for racer in racers {
            winners += u32::from(racer.await.unwrap());
        }
        assert_eq!(winners, 1);
        assert_eq!(world.accounts.users.list(None, 10).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn the_oldest_administrator_in_force_stands_in_for_the_operator() {
    let world = World::new();
    let users = &world.accounts.users;
    let operator = users.ensure_operator().await.unwrap();
    let demoted = UserEdit {
        role: Some(Role::Member),
        ..UserEdit::default()
    };
    let whom = UserRef::Email(OPERATOR_EMAIL);
    let demoted = users.edit(whom, &demoted, None, ORIGIN).await.unwrap();
    assert_eq!(demoted.id, operator.id);
    assert_eq!(
        users.operator().await.unwrap(),
        None,
        "a member is not in charge"
    );
    for number in 0..250 {
        world.member(&format!("user{number}@example.com")).await;
    }
    let ann = world.admin("ann@example.com").await;
    world.admin("bob@example.com").await;
    assert_eq!(users.operator().await.unwrap().unwrap().id, ann.id);
    world.key(&ann, "operator's").await;
    assert_eq!(
        new_key(&ann, "x").user,
        users.ensure_operator().await.unwrap().id
    );
}
