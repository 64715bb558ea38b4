use curt_accounts::{SignIn, SignUp};
use curt_core::Role;

use crate::world::{HOUR, ORIGIN, PASSWORD, World, person};

/// Everything secret that a person ever sees, and nothing of it in what is stored or shown in logs.
#[tokio::test]
async fn nothing_stored_or_shown_can_be_used_to_come_in_h10() {
    let world = World::with(SignUp::Invite);
    let users = &world.accounts.users;
    let setup = users.setup_token().await.unwrap().unwrap();
    let ann = users
        .set_up(&setup, &person("ann@example.com"), ORIGIN)
        .await
        .unwrap();
    let invited = users.invite(Role::Member, HOUR, ORIGIN).await.unwrap();
    let issued = world.key(&ann, "laptop").await;
    let signed_in = world.sign_in("ann@example.com").await;
    let shown = SignIn {
        email: "ann@example.com",
        password: PASSWORD,
        agent: "tests",
        replaces: Some(&signed_in.token),
    };
    let debugged = format!(
        "{issued:?} {signed_in:?} {invited:?} {shown:?} {:?}",
        person("a@b.c")
    );
    let stored = stored(&world).await;
    let hash = ann.password_hash.as_deref().unwrap();
    assert!(
        stored.contains("ann@example.com") && stored.contains(hash),
        "a dump of it all"
    );
    let secret = |token: &str| token[token.len() - 32..].to_owned();
    for secret in [
        PASSWORD.to_owned(),
        setup,
        invited.code.clone(),
        secret(&issued.token),
        secret(&signed_in.token),
    ] {
        for part in [&*secret, &secret[..10], &secret[secret.len() - 10..]] {
            assert!(!stored.contains(part), "{part} is stored");
            assert!(!debugged.contains(part), "{part} is shown");
        }
    }
    assert!(!debugged.contains(hash), "a hash has no business in a log");
}

/// All rows, as text; hashes of tokens as the bytes that they are.
async fn stored(world: &World) -> String {
    use curt_core::ports::{ApiKeys, AuditLog, Sessions, Users};
    let rows = &world.store.inner;
    let mut text = format!("{rows:?} {:?}", rows.audit(None, 10_000).await.unwrap());
    for key in rows.api_keys(None).await.unwrap() {
        text += &format!("{key:?} {}", String::from_utf8_lossy(&key.secret_hash));
    }
    for user in rows.users(None, 100).await.unwrap() {
        text += &format!("{user:?} {}", user.password_hash.as_deref().unwrap_or("-"));
        for session in rows.sessions(user.id, crate::world::START).await.unwrap() {
            text += &format!(
                "{session:?} {}",
                String::from_utf8_lossy(&session.secret_hash)
            );
        }
    }
    text
}
