use std::sync::Arc;

use curt_accounts::{CallerId, HashPriority, PasswordSettings, Passwords, generate_password};
use curt_core::{ErrorKind, OwnerId};

use crate::world::CHEAP;

const CALLER: CallerId = CallerId::Operator;

#[tokio::test]
async fn a_password_matches_its_own_hash_only() {
    let passwords = Passwords::new(CHEAP, HashPriority::Normal).unwrap();
    let hash = passwords.hash(CALLER, "secret words").await.unwrap();
    assert!(hash.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{hash}");
    assert_ne!(
        hash,
        passwords.hash(CALLER, "secret words").await.unwrap(),
        "salted"
    );
    assert!(
        passwords
            .verify(CALLER, "secret words", Some(&hash))
            .await
            .unwrap()
    );
    for wrong in ["", "secret word", "Secret words", "secret words "] {
        assert!(!passwords.verify(CALLER, wrong, Some(&hash)).await.unwrap());
        assert!(!passwords.verify(CALLER, wrong, None).await.unwrap());
    }
    let broken = passwords.verify(CALLER, "x", Some("not a hash")).await;
    assert_eq!(broken.unwrap_err().kind, ErrorKind::Corrupt);
}

#[tokio::test]
async fn a_hash_of_another_cost_still_matches_and_is_known_as_outdated() {
    let before = Passwords::new(CHEAP, HashPriority::Normal).unwrap();
    let dearer = PasswordSettings {
        memory_kib: 16,
        passes: 2,
        ..CHEAP
    };
    let now = Passwords::new(dearer, HashPriority::Normal).unwrap();
    let old = before.hash(CALLER, "secret words").await.unwrap();
    assert!(
        now.verify(CALLER, "secret words", Some(&old))
            .await
            .unwrap()
    );
    assert!(now.is_outdated(&old) && !before.is_outdated(&old));
    assert!(!now.is_outdated(&now.hash(CALLER, "secret words").await.unwrap()));
}

/// One hasher that takes its time.
const SLOW: PasswordSettings = PasswordSettings {
    memory_kib: 4 * 1_024,
    passes: 1,
    hashers: 1,
    link_hashers: 1,
};

/// Runs so many tries at once, each for the caller that it is given, and returns how many were refused.
async fn refused_of(
    passwords: &Arc<Passwords>,
    tries: u64,
    caller: impl Fn(u64) -> CallerId,
) -> usize {
    let tries: Vec<_> = (0..tries)
        .map(|number| {
            let (passwords, caller) = (passwords.clone(), caller(number));
            tokio::spawn(async move { passwords.verify(caller, "x", None).await })
        })
        .collect();
    let mut refused = 0;
    for done in tries {
        match done.await.unwrap() {
            Ok(matches) => assert!(!matches),
            Err(failure) => {
                assert_eq!(failure.kind, ErrorKind::Throttled);
                refused += 1;
            }
        }
    }
    refused
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_at_once_are_refused_and_not_queued_without_end() {
    let passwords = Passwords::new(SLOW, HashPriority::Normal).unwrap();
    let refused = refused_of(&passwords, 200, |number| CallerId::User(OwnerId(number))).await;
    assert!((1..=200 - 65).contains(&refused), "{refused}");
    let room_again = passwords.verify(CALLER, "x", None).await;
    assert!(!room_again.unwrap());
}

#[tokio::test]
async fn one_caller_leaves_room_for_others() {
    let passwords = Passwords::new(CHEAP, HashPriority::Normal).unwrap();
    let held: Vec<_> = std::iter::from_fn(|| passwords.admit(CALLER).ok()).collect();
    assert_eq!(held.len(), 16);
    let own = passwords.verify(CALLER, "x", None).await;
    assert_eq!(own.unwrap_err().kind, ErrorKind::Throttled);
    let other = CallerId::User(OwnerId(2));
    assert!(!passwords.verify(other, "x", None).await.unwrap());
    drop(held);
    assert!(!passwords.verify(CALLER, "x", None).await.unwrap());
}

#[test]
fn impossible_costs_are_refused_and_generated_passwords_differ() {
    let too_little = PasswordSettings {
        memory_kib: 1,
        ..CHEAP
    };
    assert!(Passwords::new(too_little, HashPriority::Normal).is_err());
    assert_eq!(generate_password().len(), 20);
    assert_ne!(generate_password(), generate_password());
}
