use std::time::Duration;

use curt_accounts::{AccountError, AccountSettings, CREDENTIAL_TTL, Credential, SignIn, UserRef};
use curt_core::Clock as _;
use curt_core::limits::{AGENT_BYTES_MAX, SESSIONS_PER_USER_MAX};
use curt_core::ports::Sessions as _;
use curt_core::{ErrorKind, Scope};

use crate::world::{CHEAP, HOUR, ORIGIN, PASSWORD, START, World};

const DAY: Duration = Duration::from_secs(86_400);
const ANN: &str = "ann@example.com";

#[tokio::test]
async fn a_session_stands_for_its_user_with_all_that_their_role_allows() {
    let world = World::new();
    let ann = world.admin(ANN).await;
    let bob = world.member("bob@example.com").await;
    for (email, user, is_admin) in [(ANN, &ann, true), ("bob@example.com", &bob, false)] {
        let signed_in = world.sign_in(email).await;
        let users = &world.accounts.users;
        let found = users.authenticate_session(&signed_in.token).await;
        let principal = found.unwrap().unwrap();
        assert_eq!(principal.user, user.id);
        for scope in [Scope::Read, Scope::Create, Scope::Manage] {
            assert!(principal.may(scope), "{scope:?}");
        }
        assert_eq!(principal.may(Scope::Admin), is_admin);
        assert_eq!(principal.made_with(), None);
        assert_eq!(principal.session(), Some(&*signed_in.session.id));
        assert!(matches!(principal.via, Credential::Session { .. }));
        assert!(!world.is_key(&signed_in.token).await);
    }
}

#[tokio::test]
async fn what_is_wrong_about_a_sign_in_is_not_told_and_costs_the_same() {
    let world = World::new();
    world.member(ANN).await;
    let operator = world.accounts.users.ensure_operator().await.unwrap();
    let whom = UserRef::Email("off@example.com");
    world.member("off@example.com").await;
    world.accounts.users.disable(whom, ORIGIN).await.unwrap();
    for (email, password) in [
        (ANN, "wrong password"),
        (ANN, ""),
        ("nobody@example.com", PASSWORD),
        ("off@example.com", PASSWORD),
        (&operator.email, PASSWORD),
        ("", PASSWORD),
        ("not an email", PASSWORD),
    ] {
        let reads = world.store.calls("user_by_email");
        let refused = world.try_sign_in(email, password).await;
        assert!(
            matches!(refused, Err(AccountError::WrongCredentials)),
            "{email}"
        );
        assert_eq!(world.store.calls("user_by_email"), reads + 1);
    }
    assert_eq!(world.store.calls("add_session"), 0);
    world.store.fail("user_by_email");
    let failed = world.try_sign_in(ANN, PASSWORD).await;
    assert!(
        matches!(failed, Err(AccountError::Store(failure)) if failure.kind == ErrorKind::Unavailable)
    );
}

#[tokio::test]
async fn each_sign_in_has_a_session_of_its_own_and_ends_the_one_that_it_replaces() {
    let world = World::new();
    world.member(ANN).await;
    let (first, other) = (world.sign_in(ANN).await, world.sign_in(ANN).await);
    assert_ne!(first.token, other.token);
    assert!(world.is_session(&first.token).await);
    let users = &world.accounts.users;
    let replacing = |token| SignIn {
        email: ANN,
        password: PASSWORD,
        agent: "tests",
        replaces: Some(token),
    };
    let second = users
        .sign_in(replacing(&first.token), ORIGIN)
        .await
        .unwrap();
    assert!(
        !world.is_session(&first.token).await,
        "the old cookie is dead at once"
    );
    assert!(world.is_session(&second.token).await && world.is_session(&other.token).await);
    // Whoever knows no more than the id of somebody's session cannot end it with this.
    let forged = format!("{}{}", &second.token[..23], "0".repeat(32));
    for odd in [&*forged, "", "rubbish"] {
        users.sign_in(replacing(odd), ORIGIN).await.unwrap();
        users.sign_out(odd, ORIGIN).await.unwrap();
    }
    assert!(world.is_session(&second.token).await);
}

#[tokio::test]
async fn a_session_ends_when_it_is_signed_out() {
    let world = World::new();
    world.member(ANN).await;
    let elsewhere = world.elsewhere(CHEAP);
    let signed_in = world.sign_in(ANN).await;
    let there = async || {
        elsewhere
            .users
            .authenticate_session(&signed_in.token)
            .await
            .unwrap()
    };
    assert!(world.is_session(&signed_in.token).await && there().await.is_some());
    world
        .accounts
        .users
        .sign_out(&signed_in.token, ORIGIN)
        .await
        .unwrap();
    assert!(!world.is_session(&signed_in.token).await);
    world.clock.advance(CREDENTIAL_TTL);
    assert!(there().await.is_none());
}

#[tokio::test]
async fn an_unused_session_ends_and_a_used_one_ends_later() {
    let world = World::new();
    world.member(ANN).await;
    let idle = world.sign_in(ANN).await.token;
    let used = world.sign_in(ANN).await.token;
    world.clock.set(START.plus(DAY * 13));
    assert!(world.is_session(&used).await);
    world
        .clock
        .set(START.plus(DAY * 14 - Duration::from_millis(1)));
    assert!(
        world
            .store
            .inner
            .session(&idle[6..22])
            .await
            .unwrap()
            .is_some()
    );
    world.clock.set(START.plus(DAY * 14));
    assert!(!world.is_session(&idle).await);
    world.clock.advance(CREDENTIAL_TTL);
    assert!(
        !world.is_session(&idle).await,
        "a late click revives nothing"
    );
    assert!(world.is_session(&used).await);
    for days in (14..90).step_by(10) {
        world.clock.set(START.plus(DAY * days));
        assert!(world.is_session(&used).await, "day {days}");
    }
    world
        .clock
        .set(START.plus(DAY * 90 - Duration::from_millis(1)));
    assert!(world.is_session(&used).await);
    world.clock.set(START.plus(DAY * 90));
    assert!(!world.is_session(&used).await, "however much it is used");
    assert!(AccountSettings::default().session_max == DAY * 90);
}

#[tokio::test]
async fn use_is_written_down_once_a_minute_and_nobody_is_kept_out_when_that_fails() {
    let world = World::new();
    world.member(ANN).await;
    let token = world.sign_in(ANN).await.token;
    for _ in 0..59 {
        assert!(world.is_session(&token).await);
        world.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(world.store.calls("touch_session"), 0);
    world.clock.advance(Duration::from_secs(1));
    world.store.fail("touch_session");
    assert!(world.is_session(&token).await);
    world.store.heal();
    for _ in 0..30 {
        world.clock.advance(Duration::from_secs(1));
        assert!(world.is_session(&token).await);
    }
    assert_eq!(world.store.calls("touch_session"), 2);
}

#[tokio::test]
async fn people_see_and_end_their_own_sessions_only() {
    let world = World::new();
    let ann = world.member(ANN).await;
    let eve = world.member("eve@example.com").await;
    let first = world.sign_in(ANN).await;
    world.clock.advance(HOUR);
    let second = world.sign_in(ANN).await;
    let users = &world.accounts.users;
    let listed = users.sessions(ann.id).await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|session| &*session.id).collect();
    assert_eq!(ids, [&*second.session.id, &*first.session.id]);
    assert!(users.sessions(eve.id).await.unwrap().is_empty());
    let foreign = users.end_session(eve.id, ids[0], ORIGIN).await;
    assert!(matches!(foreign, Err(AccountError::NotFound)));
    assert!(world.is_session(&second.token).await);
    users.end_session(ann.id, ids[0], ORIGIN).await.unwrap();
    assert!(!world.is_session(&second.token).await);
    assert!(world.is_session(&first.token).await);
    assert_eq!(users.end_sessions(&ann, ORIGIN).await.unwrap(), 1);
    assert!(!world.is_session(&first.token).await);
}

#[tokio::test]
async fn a_password_change_ends_every_other_session() {
    let world = World::new();
    let ann = world.member(ANN).await;
    let kept = world.sign_in(ANN).await;
    let other = world.sign_in(ANN).await;
    assert!(world.is_session(&kept.token).await && world.is_session(&other.token).await);
    let users = &world.accounts.users;
    let keep = Some(&*kept.session.id);
    let new = "another password";
    let guessed = users
        .change_password(ann.id, "wrong", new, keep, ORIGIN)
        .await;
    assert!(matches!(guessed, Err(AccountError::WrongCredentials)));
    assert!(world.is_session(&other.token).await);
    let weak = users
        .change_password(ann.id, PASSWORD, "short", keep, ORIGIN)
        .await;
    assert!(matches!(weak, Err(AccountError::Invalid(_))));
    users
        .change_password(ann.id, PASSWORD, new, keep, ORIGIN)
        .await
        .unwrap();
    assert!(world.is_session(&kept.token).await);
    assert!(!world.is_session(&other.token).await, "at once");
    assert!(world.try_sign_in(ANN, PASSWORD).await.is_err());
    assert!(world.try_sign_in(ANN, new).await.is_ok());
    users
        .set_password(UserRef::Email(ANN), PASSWORD, ORIGIN)
        .await
        .unwrap();
    assert!(
        !world.is_session(&kept.token).await,
        "the operator's change ends all"
    );
    world.sign_in(ANN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_meets_a_password_change_does_not_outlive_it() {
    for _ in 0..20 {
        let world = World::new();
        let ann = world.member(ANN).await;
        let racers: Vec<_> = (0..8)
            .map(|_| {
                let users = world.accounts.users.clone();
                tokio::spawn(async move {
                    let shown = SignIn {
                        email: ANN,
                        password: PASSWORD,
                        agent: "",
                        replaces: None,
                    };
                    users
                        .sign_in(shown, ORIGIN)
                        .await
                        .ok()
                        .map(|came| came.token)
                })
            })
            .collect();
        let users = &world.accounts.users;
        users
            .set_password(UserRef::Id(ann.id), "another password", ORIGIN)
            .await
            .unwrap();
        for racer in racers {
            racer.await.unwrap();
        }
        assert!(users.sessions(ann.id).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_disabled_or_changed_role_ends_the_sessions() {
    let world = World::new();
    let ann = world.admin(ANN).await;
    let users = &world.accounts.users;
    let elsewhere = world.elsewhere(CHEAP);
    let demoted = world.sign_in(ANN).await.token;
    let edit = curt_accounts::UserEdit {
        role: Some(curt_core::Role::Member),
        ..Default::default()
    };
    users
        .edit(UserRef::Id(ann.id), &edit, None, ORIGIN)
        .await
        .unwrap();
    assert!(!world.is_session(&demoted).await);
    let token = world.sign_in(ANN).await.token;
    let there = async || elsewhere.users.authenticate_session(&token).await.unwrap();
    assert!(world.is_session(&token).await && there().await.is_some());
    users.disable(UserRef::Id(ann.id), ORIGIN).await.unwrap();
    assert!(!world.is_session(&token).await);
    world.clock.advance(CREDENTIAL_TTL);
    assert!(there().await.is_none());
    users.enable(UserRef::Id(ann.id), ORIGIN).await.unwrap();
    assert!(
        !world.is_session(&token).await,
        "an ended session stays ended"
    );
}

#[tokio::test]
async fn a_sign_in_brings_the_hash_to_todays_cost() {
    let world = World::new();
    let before = world.member(ANN).await;
    let dearer = curt_accounts::PasswordSettings { passes: 2, ..CHEAP };
    let elsewhere = world.elsewhere(dearer);
    let shown = SignIn {
        email: ANN,
        password: PASSWORD,
        agent: "",
        replaces: None,
    };
    let user = elsewhere.users.sign_in(shown, ORIGIN).await.unwrap().user;
    assert_ne!(user.password_hash, before.password_hash);
    assert!(user.password_hash.unwrap().contains("t=2"));
    world.sign_in(ANN).await;
    // Where the new hash cannot be stored, the person still comes in.
    world.store.fail("update_user");
    elsewhere.users.sign_in(shown, ORIGIN).await.unwrap();
}

#[tokio::test]
async fn sessions_are_bounded_described_and_purged() {
    let world = World::new();
    let ann = world.member(ANN).await;
    let first = world.sign_in(ANN).await;
    for _ in 0..SESSIONS_PER_USER_MAX {
        world.clock.advance(Duration::from_millis(1));
        world.sign_in(ANN).await;
    }
    let users = &world.accounts.users;
    assert_eq!(
        users.sessions(ann.id).await.unwrap().len(),
        SESSIONS_PER_USER_MAX
    );
    assert!(
        !world.is_session(&first.token).await,
        "the oldest made room"
    );
    let agent = format!("a\r\nb{}", "ä".repeat(AGENT_BYTES_MAX));
    let shown = SignIn {
        email: ANN,
        password: PASSWORD,
        agent: &agent,
        replaces: None,
    };
    let session = users.sign_in(shown, ORIGIN).await.unwrap().session;
    assert!(session.agent.starts_with("abä") && session.agent.len() <= AGENT_BYTES_MAX);
    world.clock.advance(DAY * 14);
    let held = SESSIONS_PER_USER_MAX as u64;
    assert_eq!(users.purge_sessions(world.clock.now()).await.unwrap(), held);
    assert_eq!(users.purge_sessions(world.clock.now()).await.unwrap(), 0);
}
