//! Wrong passwords lock out whoever tries them, and not the owner of the account.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use curt_accounts::{Origin, UserRef};
use http::Request;
use http::header::SET_COOKIE;
use serde_json::json;

use crate::harness::{ADA, Answer, BASE, PASSWORD, World};

const ADAS: &str = "ada@example.com";
const HOME: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
/// Somewhere that Ada has never been.
const ABROAD: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 10);

async fn sign_in(world: &World, from: Ipv4Addr, password: &str, cookie: &str) -> Answer {
    let body = json!({"email": ADAS, "password": password}).to_string();
    let mut request = Request::post("/api/v1/sessions")
        .header("content-type", "application/json")
        .header("origin", BASE);
    if !cookie.is_empty() {
        request = request.header("cookie", cookie);
    }
    let mut request = request.body(Body::from(body)).unwrap();
    let peer = SocketAddr::new(IpAddr::V4(from), 50_000);
    request.extensions_mut().insert(ConnectInfo(peer));
    world.send(request).await
}

/// The cookie that a browser keeps beyond its session.
fn browser_cookie(answer: &Answer) -> String {
    let lines = answer.headers.get_all(SET_COOKIE).iter();
    let mut lines = lines.map(|line| line.to_str().unwrap());
    let line = lines
        .find(|line| line.starts_with("__Host-curt_browser="))
        .unwrap();
    for part in ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"] {
        assert!(line.split("; ").any(|given| given == part), "{line}");
    }
    line.split(';').next().unwrap().to_owned()
}

async fn world() -> World {
    let world = World::new().await;
    world.session(ADA).await;
    world
}

fn stranger(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + number)
}

#[tokio::test]
async fn strangers_guess_slowly_and_keep_nobody_out() {
    let world = world().await;
    let first = sign_in(&world, HOME, PASSWORD, "").await;
    let browser = browser_cookie(&first);
    // An hour of guesses, each from an address of its own: 20 in 10 minutes at most, 10 at once and one a minute.
    let (mut heard, mut number) = (0, 0);
    for minute in 0..60 {
        for _ in 0..10 {
            number += 1;
            match sign_in(&world, stranger(number), "a wrong guess", "").await {
                answer if answer.status == 401 => heard += 1,
                answer => assert_eq!(answer.problem(), "rate-limited"),
            }
        }
        // The account is closed to strangers, right or wrong, and open to its owner.
        if minute > 3 {
            number += 1;
            let unknown = sign_in(&world, stranger(number), PASSWORD, "").await;
            assert_eq!(unknown.problem(), "rate-limited");
        }
        let abroad = sign_in(&world, ABROAD, PASSWORD, &browser).await;
        assert_eq!(abroad.status, 201, "a browser that is known");
        let home = sign_in(&world, HOME, PASSWORD, "").await;
        assert_eq!(home.status, 201, "an address that is known");
        world.clock.advance(Duration::from_secs(60));
    }
    assert!((65..=75).contains(&heard), "{heard} guesses in an hour");
    // A new password makes the browsers strangers again.
    let set =
        world
            .accounts
            .users
            .set_password(UserRef::Id(ADA), "another good one", Origin::OPERATOR);
    set.await.unwrap();
    for _ in 0..40 {
        number += 1;
        sign_in(&world, stranger(number), "a wrong guess", "").await;
    }
    let elsewhere = Ipv4Addr::new(203, 0, 113, 77);
    let unknown = sign_in(&world, elsewhere, "another good one", &browser).await;
    assert_eq!(unknown.problem(), "rate-limited");
}

#[tokio::test]
async fn a_known_browser_cannot_guess_without_limit_either() {
    let world = world().await;
    let browser = browser_cookie(&sign_in(&world, HOME, PASSWORD, "").await);
    let mut heard = 0;
    for number in 0..100 {
        let answer = sign_in(&world, stranger(number), "a wrong guess", &browser).await;
        heard += u32::from(answer.status == 401);
    }
    assert_eq!(heard, 10);
    // It used up what is its own: strangers still have theirs, and so has the address.
    let other = sign_in(&world, stranger(200), PASSWORD, "").await;
    assert_eq!(other.status, 201);
    assert_eq!(sign_in(&world, HOME, PASSWORD, "").await.status, 201);
}

#[tokio::test]
async fn a_session_makes_a_browser_known_and_a_forged_token_does_not() {
    let world = world().await;
    let session = format!("__Host-curt_session={}", world.session(ADA).await);
    for number in 0..25 {
        sign_in(&world, stranger(number), "a wrong guess", "").await;
    }
    let known = sign_in(&world, ABROAD, "a wrong guess", &session).await;
    assert_eq!(known.problem(), "wrong-credentials");
    let forged = format!("curtb_{}_{}", "a".repeat(16), "0".repeat(32));
    for cookie in [
        format!("__Host-curt_browser={forged}"),
        "__Host-curt_browser=".to_owned(),
        format!("curt_browser={forged}"),
    ] {
        let refused = sign_in(&world, ABROAD, PASSWORD, &cookie).await;
        assert_eq!(refused.problem(), "rate-limited", "{cookie}");
    }
}

#[tokio::test]
async fn an_address_that_guesses_is_locked_out_alone() {
    let world = world().await;
    let attacker = stranger(1);
    let mut heard = 0;
    for _ in 0..100 {
        let answer = sign_in(&world, attacker, "a wrong guess", "").await;
        heard += u32::from(answer.status == 401);
    }
    assert_eq!(heard, 5);
    assert_eq!(sign_in(&world, attacker, PASSWORD, "").await.status, 429);
    assert_eq!(sign_in(&world, ABROAD, PASSWORD, "").await.status, 201);
    // Right ones cost nothing.
    for _ in 0..50 {
        assert_eq!(sign_in(&world, HOME, PASSWORD, "").await.status, 201);
    }
}
