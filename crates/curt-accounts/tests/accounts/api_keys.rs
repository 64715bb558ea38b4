use std::time::Duration;

use curt_accounts::{AccountError, CREDENTIAL_TTL, Credential, NewKey, UserRef};
use curt_core::limits::API_KEYS_PER_USER_MAX;
use curt_core::ports::QuotaRule;
use curt_core::{Allowance, ErrorKind, Role, Scope, Scopes, UnixMillis};

use crate::world::{CHEAP, HOUR, ORIGIN, START, World, mistakes, new_key};

#[tokio::test]
async fn an_issued_token_stands_for_its_user_and_nothing_more() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let key = NewKey {
        scopes: [Scope::Read].into_iter().collect(),
        ..new_key(&ann, "laptop")
    };
    let issued = world
        .accounts
        .api_keys
        .issue(key, Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    let found = world.accounts.api_keys.authenticate(&issued.token).await;
    let principal = found.unwrap().unwrap();
    assert_eq!(principal.user, ann.id);
    assert!(principal.may(Scope::Read));
    for scope in [Scope::Create, Scope::Manage, Scope::Admin] {
        assert!(!principal.may(scope), "{scope:?}");
    }
    assert_eq!(principal.made_with(), Some(issued.key.number));
    assert!(matches!(&principal.via, Credential::ApiKey { name, .. } if &**name == "laptop"));
}

#[tokio::test]
async fn a_key_cannot_do_more_than_its_maker_and_its_user() {
    let world = World::new();
    let (ann, bob) = (
        world.admin("ann@example.com").await,
        world.member("bob@example.com").await,
    );
    let keys = &world.accounts.api_keys;
    let admin_key = |user| NewKey {
        scopes: Scopes::ALL,
        ..new_key(user, "all")
    };
    let refused = [("scopes", "not_allowed")];
    let by_member = keys.issue(admin_key(&bob), Scopes::ALL, ORIGIN).await;
    assert_eq!(mistakes(by_member), refused);
    let reader: Scopes = [Scope::Read].into_iter().collect();
    let by_reader = keys.issue(admin_key(&ann), reader, ORIGIN).await;
    assert_eq!(mistakes(by_reader), refused);
    let wide = QuotaRule {
        amount: u64::MAX,
        period: Duration::from_secs(1),
    };
    let generous = NewKey {
        allowance: Allowance {
            creations: Some(wide),
            redirections: None,
        },
        ..new_key(&bob, "generous")
    };
    let usual = generous.scopes;
    let by_themselves = keys.issue(generous.clone(), usual, ORIGIN).await;
    assert_eq!(mistakes(by_themselves), [("allowance", "not_allowed")]);
    keys.issue(generous, Scopes::ALL, ORIGIN).await.unwrap();
}

#[tokio::test]
async fn the_admin_scope_counts_only_while_its_user_is_an_administrator() {
    let world = World::new();
    let ann = world.admin("ann@example.com").await;
    let token = world.key(&ann, "laptop").await.token;
    let is_admin = async || {
        let found = world.accounts.api_keys.authenticate(&token).await;
        found.unwrap().unwrap().may(Scope::Admin)
    };
    assert!(is_admin().await);
    for role in [Role::Member, Role::Admin] {
        let edit = curt_accounts::UserEdit {
            role: Some(role),
            ..Default::default()
        };
        let whom = UserRef::Id(ann.id);
        world
            .accounts
            .users
            .edit(whom, &edit, None, ORIGIN)
            .await
            .unwrap();
        assert_eq!(is_admin().await, role == Role::Admin);
    }
}

#[tokio::test]
async fn wrong_tokens_are_refused_alike_and_cost_alike() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let token = world.key(&ann, "laptop").await.token;
    let other = world.key(&ann, "phone").await.token;
    let last = if token.ends_with('a') { "b" } else { "a" };
    let wrong_secret = format!("{}{last}", &token[..token.len() - 1]);
    let mixed = format!("{}{}", &token[..14], &other[14..]);
    let unknown = format!("curt_00000000_{}", "0".repeat(32));
    let session = format!("curts_{}_{}", "0".repeat(16), "0".repeat(32));
    for bad in ["", "curt_", &session, &token[..20], &token.to_uppercase()] {
        assert!(!world.is_key(bad).await, "{bad:?}");
    }
    for bad in [&wrong_secret, &mixed, &unknown, &token] {
        let reads = || (world.store.calls("api_key"), world.store.calls("user"));
        let before = reads();
        assert_eq!(world.is_key(bad).await, *bad == token, "{bad}");
        assert_eq!(world.is_key(bad).await, *bad == token, "{bad}, from memory");
        assert_eq!(reads(), (before.0 + 1, before.1 + 1), "{bad}");
    }
}

#[tokio::test]
async fn a_revoked_key_stops_here_at_once_and_elsewhere_within_a_second() {
    let world = World::new();
    let elsewhere = world.elsewhere(CHEAP);
    let ann = world.member("ann@example.com").await;
    let issued = world.key(&ann, "laptop").await;
    assert!(world.is_key(&issued.token).await);
    let there = async || {
        elsewhere
            .api_keys
            .authenticate(&issued.token)
            .await
            .unwrap()
    };
    assert!(there().await.is_some());
    let keys = &world.accounts.api_keys;
    let stranger = world.member("eve@example.com").await.id;
    let foreign = keys
        .revoke(&issued.key.prefix, Some(stranger), Scopes::ALL, ORIGIN)
        .await;
    assert!(matches!(foreign, Err(AccountError::NotFound)));
    assert!(world.is_key(&issued.token).await);
    keys.revoke(&issued.key.prefix, Some(ann.id), Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    assert!(!world.is_key(&issued.token).await);
    world.clock.advance(CREDENTIAL_TTL);
    assert!(there().await.is_none());
    for prefix in [&*issued.key.prefix, "nothing0", ""] {
        let again = keys.revoke(prefix, None, Scopes::ALL, ORIGIN).await;
        assert!(matches!(again, Err(AccountError::NotFound)), "{prefix}");
    }
    assert!(CREDENTIAL_TTL <= Duration::from_secs(1));
}

#[tokio::test]
async fn a_disabled_users_key_stops_here_at_once_and_elsewhere_within_a_second() {
    let world = World::new();
    let elsewhere = world.elsewhere(CHEAP);
    let ann = world.member("ann@example.com").await;
    let token = world.key(&ann, "laptop").await.token;
    let there = async || elsewhere.api_keys.authenticate(&token).await.unwrap();
    assert!(world.is_key(&token).await && there().await.is_some());
    let whom = UserRef::Email("ANN@example.com");
    world.accounts.users.disable(whom, ORIGIN).await.unwrap();
    assert!(!world.is_key(&token).await);
    world.clock.advance(CREDENTIAL_TTL);
    assert!(there().await.is_none());
    world.accounts.users.enable(whom, ORIGIN).await.unwrap();
    assert!(world.is_key(&token).await);
}

#[tokio::test]
async fn an_expired_key_stops_at_its_hour() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let until = |at| NewKey {
        expires_at: Some(at),
        ..new_key(&ann, "laptop")
    };
    let keys = &world.accounts.api_keys;
    let issued = keys
        .issue(until(START.plus(HOUR)), Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    world.clock.set(START.plus(HOUR - Duration::from_millis(1)));
    assert!(world.is_key(&issued.token).await);
    world.clock.set(START.plus(HOUR));
    assert!(!world.is_key(&issued.token).await);
    for past in [START, UnixMillis(0), UnixMillis(i64::MAX)] {
        let refused = keys.issue(until(past), Scopes::ALL, ORIGIN).await;
        assert_eq!(mistakes(refused), [("expires_at", "not_in_future")]);
    }
}

#[tokio::test]
async fn a_rotated_key_and_its_successor_overlap() {
    let world = World::new();
    let ann = world.admin("ann@example.com").await;
    let keys = &world.accounts.api_keys;
    let new = NewKey {
        expires_at: Some(START.plus(HOUR * 48)),
        ..new_key(&ann, "laptop")
    };
    let old = keys.issue(new, Scopes::ALL, ORIGIN).await.unwrap();
    world.clock.advance(HOUR);
    let prefix = &old.key.prefix;
    let foreign = Some(world.member("eve@example.com").await.id);
    let refused = keys
        .rotate(prefix, foreign, HOUR, Scopes::ALL, ORIGIN)
        .await;
    assert!(matches!(refused, Err(AccountError::NotFound)));
    let rotated = keys
        .rotate(prefix, Some(ann.id), HOUR, Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    assert_eq!(rotated.key.name, old.key.name);
    assert_eq!(rotated.key.scopes, old.key.scopes);
    assert_eq!(rotated.key.expires_at, Some(START.plus(HOUR * 49)));
    assert_ne!(rotated.key.number, old.key.number);
    assert!(world.is_key(&old.token).await && world.is_key(&rotated.token).await);
    let again = keys.rotate(prefix, None, HOUR, Scopes::ALL, ORIGIN).await;
    assert!(matches!(again, Err(AccountError::NotFound)));
    world.clock.advance(HOUR - Duration::from_millis(1));
    assert!(world.is_key(&old.token).await);
    world.clock.advance(Duration::from_millis(1));
    assert!(!world.is_key(&old.token).await);
    assert!(world.is_key(&rotated.token).await);
}

#[tokio::test]
async fn a_retired_key_can_be_ended_before_its_time() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let name = "ä".repeat(50);
    let old = world.key(&ann, &name).await;
    let keys = &world.accounts.api_keys;
    let rotated = keys
        .rotate(&old.key.prefix, None, HOUR, Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    keys.revoke(&old.key.prefix, None, Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    assert!(!world.is_key(&old.token).await);
    assert!(world.is_key(&rotated.token).await);
    let at_once = keys
        .rotate(
            &rotated.key.prefix,
            None,
            Duration::ZERO,
            Scopes::ALL,
            ORIGIN,
        )
        .await;
    assert!(!world.is_key(&rotated.token).await);
    assert!(world.is_key(&at_once.unwrap().token).await);
}

#[tokio::test]
async fn decisions_are_repeated_for_a_second_good_and_bad() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let good = world.key(&ann, "laptop").await.token;
    let bad = format!("curt_00000000_{}", "0".repeat(32));
    let reads = || world.store.calls("api_key");
    for token in [&good, &bad] {
        let before = reads();
        for _ in 0..10 {
            world.is_key(token).await;
        }
        assert_eq!(reads(), before + 1);
        world.clock.advance(CREDENTIAL_TTL);
        world.is_key(token).await;
        assert_eq!(reads(), before + 2);
    }
    // A clock that steps back ends a decision instead of prolonging it.
    world.is_key(&good).await;
    let before = reads();
    world.clock.set(START.minus(HOUR));
    world.is_key(&good).await;
    assert_eq!(reads(), before + 1);
}

#[tokio::test]
async fn a_failing_store_is_an_error_and_not_a_refusal() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let token = world.key(&ann, "laptop").await.token;
    for method in ["api_key", "user"] {
        world.store.fail(method);
        let failed = world.accounts.api_keys.authenticate(&token).await;
        assert_eq!(failed.unwrap_err().kind, ErrorKind::Unavailable);
        world.store.heal();
    }
    assert!(world.is_key(&token).await, "the failure is not remembered");
}

#[tokio::test]
async fn names_are_checked_and_a_name_is_used_once_at_a_time() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let keys = &world.accounts.api_keys;
    let long = "x".repeat(101);
    for name in ["", "  ", "a\nb", &long] {
        let refused = keys.issue(new_key(&ann, name), Scopes::ALL, ORIGIN).await;
        assert_eq!(mistakes(refused)[0].0, "name", "{name:?}");
    }
    let empty = NewKey {
        scopes: Scopes::NONE,
        ..new_key(&ann, "")
    };
    let both = keys.issue(empty, Scopes::ALL, ORIGIN).await;
    assert_eq!(
        mistakes(both),
        [("name", "required"), ("scopes", "required")]
    );
    assert!(keys.list(None).await.unwrap().is_empty());
    let first = world.key(&ann, "laptop").await;
    let again = keys
        .issue(new_key(&ann, " laptop"), Scopes::ALL, ORIGIN)
        .await;
    assert!(matches!(again, Err(AccountError::KeyNameTaken)));
    keys.revoke(&first.key.prefix, None, Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    world.key(&ann, "laptop").await;
    let mut nobody = new_key(&ann, "laptop");
    nobody.user.0 += 1;
    let nobodys = keys.issue(nobody, Scopes::ALL, ORIGIN).await;
    assert!(matches!(nobodys, Err(AccountError::NotFound)));
}

#[tokio::test]
async fn taken_prefixes_are_tried_again_but_not_for_ever_and_keys_are_bounded() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    world.store.refuse(3);
    let first = world.key(&ann, "laptop").await;
    assert!(world.is_key(&first.token).await);
    world.store.refuse(100);
    let keys = &world.accounts.api_keys;
    let given_up = keys
        .issue(new_key(&ann, "phone"), Scopes::ALL, ORIGIN)
        .await;
    assert!(
        matches!(given_up, Err(AccountError::Store(failure)) if failure.kind == ErrorKind::Bug)
    );
    world.store.refuse(0);
    for number in 1..API_KEYS_PER_USER_MAX {
        world.key(&ann, &number.to_string()).await;
    }
    let more = keys.issue(new_key(&ann, "more"), Scopes::ALL, ORIGIN).await;
    assert!(matches!(more, Err(AccountError::TooMany)));
    keys.revoke(&first.key.prefix, None, Scopes::ALL, ORIGIN)
        .await
        .unwrap();
    world.key(&ann, "more").await;
}

#[tokio::test]
async fn the_last_use_is_written_out_when_told_and_survives_a_failure() {
    let world = World::new();
    let ann = world.member("ann@example.com").await;
    let used = world.key(&ann, "used").await;
    world.key(&ann, "unused").await;
    let keys = &world.accounts.api_keys;
    world.is_key(&used.token).await;
    world
        .is_key(&format!("curt_00000000_{}", "0".repeat(32)))
        .await;
    assert_eq!(world.store.calls("touch_api_keys"), 0);
    world.store.fail("touch_api_keys");
    keys.flush_used().await.unwrap_err();
    world.store.heal();
    keys.flush_used().await.unwrap();
    let listed = keys.list(Some(ann.id)).await.unwrap();
    let last_used: Vec<_> = listed.iter().map(|key| key.last_used_at).collect();
    assert_eq!(last_used, [Some(START), None]);
    let calls = world.store.calls("touch_api_keys");
    keys.flush_used().await.unwrap();
    assert_eq!(
        world.store.calls("touch_api_keys"),
        calls,
        "there is nothing new"
    );
}
