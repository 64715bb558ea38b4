use curt_accounts::{PasswordSettings, Passwords, generate_password};
use curt_core::ErrorKind;

use crate::world::CHEAP;

#[tokio::test]
async fn a_password_matches_its_own_hash_only() {
    let passwords = Passwords::new(CHEAP).unwrap();
    let hash = passwords.hash("secret words").await.unwrap();
    assert!(hash.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{hash}");
    assert_ne!(
        hash,
        passwords.hash("secret words").await.unwrap(),
        "salted"
    );
    assert!(passwords.verify("secret words", Some(&hash)).await.unwrap());
    for wrong in ["", "secret word", "Secret words", "secret words "] {
        assert!(!passwords.verify(wrong, Some(&hash)).await.unwrap());
        assert!(!passwords.verify(wrong, None).await.unwrap());
    }
    let broken = passwords.verify("x", Some("not a hash")).await;
    assert_eq!(broken.unwrap_err().kind, ErrorKind::Corrupt);
}

#[tokio::test]
async fn a_hash_of_another_cost_still_matches_and_is_known_as_outdated() {
    let before = Passwords::new(CHEAP).unwrap();
    let dearer = PasswordSettings {
        memory_kib: 16,
        passes: 2,
        ..CHEAP
    };
    let now = Passwords::new(dearer).unwrap();
    let old = before.hash("secret words").await.unwrap();
    assert!(now.verify("secret words", Some(&old)).await.unwrap());
    assert!(now.is_outdated(&old) && !before.is_outdated(&old));
    assert!(!now.is_outdated(&now.hash("secret words").await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_at_once_are_refused_and_not_queued_without_end() {
    let slow = PasswordSettings {
        memory_kib: 4 * 1_024,
        passes: 1,
        hashers: 1,
    };
    let passwords = Passwords::new(slow).unwrap();
    let tries: Vec<_> = (0..200)
        .map(|_| {
            let passwords = passwords.clone();
            tokio::spawn(async move { passwords.verify("x", None).await })
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
    assert!((1..=200 - 65).contains(&refused), "{refused}");
    assert!(!passwords.verify("x", None).await.unwrap(), "room again");
}

#[test]
fn impossible_costs_are_refused_and_generated_passwords_differ() {
    let too_little = PasswordSettings {
        memory_kib: 1,
        ..CHEAP
    };
    assert!(Passwords::new(too_little).is_err());
    assert_eq!(generate_password().len(), 20);
    assert_ne!(generate_password(), generate_password());
}
