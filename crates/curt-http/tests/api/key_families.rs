//! The credential matrix, continued: everybody who can make API keys × everything that makes one. Whatever comes of it
//! outlives nobody, outranks nobody, counts into the same limit, and ends with the key that made it.

use std::time::Duration;

use axum::body::Body;
use curt_accounts::{NewKey, Origin};
use curt_core::ports::{ApiKey, QuotaRule};
use curt_core::{Allowance, Clock, OwnerId, Scope, Scopes, UnixMillis};
use http::{Method, Request};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{ADA, Answer, BASE, ROOT, World};

const HOUR: Duration = Duration::from_secs(3_600);
const MEMBER: [Scope; 3] = [Scope::Read, Scope::Create, Scope::Manage];
/// Links that a limited key and all that it makes may make together.
const LIMIT: u64 = 4;

/// Who asks for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Plain,
    /// Ends in an hour.
    Expiring,
    /// May make [`LIMIT`] links in an hour.
    Limited,
    ExpiringLimited,
    /// Replaced already, and on its way out.
    Retired,
    /// A key that another key made.
    Child,
    /// Has the scope `manage` alone.
    Manage,
    /// An administrator's key.
    Admin,
    AdminLimited,
    /// A browser.
    Session,
}

use Maker::{
    Admin, AdminLimited, Child, Expiring, ExpiringLimited, Limited, Manage, Plain, Retired, Session,
};

const MAKERS: [Maker; 10] = [
    Plain,
    Expiring,
    Limited,
    ExpiringLimited,
    Retired,
    Child,
    Manage,
    Admin,
    AdminLimited,
    Session,
];

/// What is asked for, and the statuses in the order of [`MAKERS`].
type Row = (&'static str, &'static str, &'static str, [u16; 10]);

const IN_TWO_HOURS: &str = r#"{"name":"n","expires_at":"2026-01-01T02:00:00Z"}"#;
const IN_HALF_A_MINUTE: &str = r#"{"name":"n","expires_at":"2026-01-01T00:00:30Z"}"#;
const WIDE: &str = r#"{"name":"n","creations":{"amount":1000,"period_seconds":3600}}"#;

#[rustfmt::skip]
const TABLE: &[Row] = &[
    //                                                plain expiring limited both retired child manage admin admin-limited session
    ("mint",            "/api/v1/keys", r#"{"name":"n"}"#,
                                                      [201, 201, 201, 201, 201, 201, 201, 201, 201, 201]),
    ("mint, sooner",    "/api/v1/keys", IN_HALF_A_MINUTE,
                                                      [201, 201, 201, 201, 201, 201, 201, 201, 201, 201]),
    ("mint, later",     "/api/v1/keys", IN_TWO_HOURS, [201, 422, 201, 422, 422, 201, 201, 201, 201, 201]),
    ("mint, stronger",  "/api/v1/keys", r#"{"name":"n","scopes":["read","create","manage"]}"#,
                                                      [201, 201, 201, 201, 201, 201, 422, 201, 201, 201]),
    ("mint, admin",     "/api/v1/keys", r#"{"name":"n","scopes":["admin","manage"]}"#,
                                                      [422, 422, 422, 422, 422, 422, 422, 201, 201, 422]),
    ("mint, wide",      "/api/v1/keys", WIDE,         [403, 403, 403, 403, 403, 403, 403, 201, 422, 403]),
    ("mint for Bob",    "/api/v1/keys?user_id=2", r#"{"name":"n"}"#,
                                                      [403, 403, 403, 403, 403, 403, 403, 201, 201, 403]),
    // A key that is being replaced is not replaced again.
    ("rotate itself",   "/api/v1/keys/{own}/rotate", "",
                                                      [201, 201, 201, 201, 404, 201, 201, 201, 201, 201]),
    // Limits cannot be left by way of another key.
    ("rotate another",  "/api/v1/keys/{other}/rotate", "",
                                                      [403, 403, 403, 403, 403, 403, 403, 201, 403, 201]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_outlives_outranks_or_outspends_the_one_that_made_it() {
    let mut cases = JoinSet::new();
    for row in TABLE {
        for (maker, status) in MAKERS.into_iter().zip(row.3) {
            cases.spawn(deviations(row, maker, status));
        }
    }
    let count = cases.len();
    let deviations = cases.join_all().await.concat();
    assert_eq!(count, TABLE.len() * MAKERS.len());
    assert!(deviations.is_empty(), "{}", deviations.join("\n"));
}

async fn deviations(row: &'static Row, maker: Maker, status: u16) -> Vec<String> {
    let (what, path, body, _) = row;
    let mut found = Vec::new();
    // Two ways in which a maker ends, each in a world of its own.
    for is_revoked in [true, false] {
        let scene = Scene::new(maker).await;
        let made = scene.ask(path, body).await;
        let mut note = |why: String| found.push(format!("{what} by {maker:?}: {why}"));
        if made.status.as_u16() != status {
            note(format!("{status} expected, {made:?}"));
        } else if made.status == 201 && maker != Session {
            for why in scene.flaws(&made, is_revoked).await {
                note(why);
            }
        }
    }
    found
}

struct Scene {
    world: World,
    maker: Maker,
    token: String,
    /// When the maker ends.
    end: Option<UnixMillis>,
    /// Another key of Ada's.
    other: String,
}

impl Scene {
    async fn new(maker: Maker) -> Self {
        let world = World::new().await;
        let other = issue(&world, ADA, "other", &MEMBER, None, false).await;
        let token = match maker {
            Maker::Plain | Maker::Retired => {
                let token = issue(&world, ADA, "maker", &MEMBER, None, false).await;
                if maker == Maker::Retired {
                    let minute = Duration::from_secs(60);
                    let keys = &world.accounts.api_keys;
                    let prefix = prefix_of(&token);
                    let rotated = keys.rotate(prefix, None, minute, Scopes::ALL, Origin::OPERATOR);
                    rotated.await.unwrap();
                }
                token
            }
            Maker::Expiring => issue(&world, ADA, "maker", &MEMBER, Some(HOUR), false).await,
            Maker::Limited => issue(&world, ADA, "maker", &MEMBER, None, true).await,
            Maker::ExpiringLimited => issue(&world, ADA, "maker", &MEMBER, Some(HOUR), true).await,
            Maker::Child => {
                let made = world
                    .call(Method::POST, "/api/v1/keys", Some(json!({"name": "maker"})))
                    .await;
                made.json()["token"].as_str().unwrap().to_owned()
            }
            Maker::Manage => issue(&world, ADA, "maker", &[Scope::Manage], None, false).await,
            Maker::Admin => issue(&world, ROOT, "maker", &Scope::ALL, None, false).await,
            Maker::AdminLimited => issue(&world, ROOT, "maker", &Scope::ALL, None, true).await,
            Maker::Session => world.session(ADA).await,
        };
        let end = match maker {
            Maker::Session => None,
            _ => stored(&world, &token).await.ends_at(),
        };
        Self {
            world,
            maker,
            token,
            end,
            other,
        }
    }

    async fn ask(&self, path: &str, body: &str) -> Answer {
        let own = match self.maker {
            Maker::Session => &self.world.key,
            _ => &self.token,
        };
        let path = path.replace("{own}", prefix_of(own));
        let path = path.replace("{other}", prefix_of(&self.other));
        match self.maker {
            Maker::Session => {
                let cookie = format!("__Host-curt_session={}", self.token);
                let headers = [("cookie", cookie.as_str()), ("origin", BASE)];
                send(&self.world, Method::POST, &path, &headers, body).await
            }
            _ => self.by_key(&self.token, Method::POST, &path, body).await,
        }
    }

    async fn by_key(&self, key: &str, method: Method, path: &str, body: &str) -> Answer {
        send(&self.world, method, path, &[("x-api-key", key)], body).await
    }

    /// What is stored about a key.
    async fn stored(&self, token: &str) -> ApiKey {
        stored(&self.world, token).await
    }

    async fn works(&self, token: &str) -> bool {
        let keys = &self.world.accounts.api_keys;
        keys.authenticate(token).await.unwrap().is_some()
    }

    /// What is wrong with a key that the maker made, and with the key that this one makes.
    async fn flaws(&self, made: &Answer, is_revoked: bool) -> Vec<String> {
        let mut flaws = Vec::new();
        let maker = self.stored(&self.token).await;
        let child = made.json()["token"].as_str().unwrap().to_owned();
        let mut family = vec![child.clone()];
        if self.stored(&child).await.scopes.has(Scope::Manage) {
            let body = r#"{"name":"grandchild"}"#;
            let made = self.by_key(&child, Method::POST, "/api/v1/keys", body);
            let made = made.await;
            match made.json()["token"].as_str() {
                Some(token) => family.push(token.to_owned()),
                None => flaws.push(format!("its key cannot make one: {made:?}")),
            }
        }
        let mut parent = maker.clone();
        for token in &family {
            let key = self.stored(token).await;
            if key.parent.as_deref() != Some(&*parent.prefix) {
                flaws.push(format!("parent {:?}", key.parent));
            }
            let outlives = |end| key.ends_at().is_none_or(|own| own > end);
            if self.end.is_some_and(outlives) {
                flaws.push(format!("ends {:?}, not {:?}", key.ends_at(), self.end));
            }
            if !key.scopes.iter().all(|scope| maker.scopes.has(scope)) {
                flaws.push(format!("scopes {:?}, not {:?}", key.scopes, maker.scopes));
            }
            parent = key;
        }
        flaws.extend(self.overspending(&family).await);
        let bystander = self.world.stranger.clone();
        if is_revoked {
            let keys = &self.world.accounts.api_keys;
            let revoked = keys.revoke(&maker.prefix, None, Scopes::ALL, Origin::OPERATOR);
            revoked.await.unwrap();
        } else {
            let Some(end) = self.end else {
                return flaws;
            };
            let left = end.since(self.world.clock.now());
            self.world.clock.advance(left);
        }
        for token in family.iter().chain([&self.token]) {
            if self.works(token).await {
                flaws.push(format!("{} outlives its maker", prefix_of(token)));
            }
        }
        if !self.works(&bystander).await {
            flaws.push("somebody else's key ended too".to_owned());
        }
        flaws
    }

    /// Makes links with the maker and its family in turn, until none of them may.
    async fn overspending(&self, family: &[String]) -> Option<String> {
        let is_limited = matches!(
            self.maker,
            Maker::Limited | Maker::ExpiringLimited | Maker::AdminLimited
        );
        if !is_limited {
            return None;
        }
        let mut made = 0;
        for _ in 0..=LIMIT {
            for token in family.iter().chain([&self.token]) {
                let body = r#"{"target":"https://example.com/"}"#;
                let answer = self
                    .by_key(token, Method::POST, "/api/v1/links", body)
                    .await;
                made += u64::from(answer.status == 201);
            }
        }
        (made != LIMIT).then(|| format!("{made} links of {LIMIT}"))
    }
}

async fn stored(world: &World, token: &str) -> ApiKey {
    let keys = &world.accounts.api_keys;
    keys.get(prefix_of(token), None).await.unwrap()
}

async fn issue(
    world: &World,
    user: OwnerId,
    name: &str,
    scopes: &[Scope],
    life: Option<Duration>,
    is_limited: bool,
) -> String {
    let rule = QuotaRule {
        amount: LIMIT,
        period: HOUR,
    };
    let key = NewKey {
        user,
        name: name.to_owned(),
        scopes: scopes.iter().copied().collect(),
        allowance: Allowance {
            creations: is_limited.then_some(rule),
            redirections: None,
        },
        expires_at: life.map(|life| world.clock.now().plus(life)),
    };
    let keys = &world.accounts.api_keys;
    let issued = keys.issue(key, Scopes::ALL, Origin::OPERATOR).await;
    issued.unwrap().token
}

async fn send(
    world: &World,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let body = Body::from(body.to_owned());
    world.send(request.body(body).unwrap()).await
}

fn prefix_of(token: &str) -> &str {
    token.split('_').nth(1).unwrap()
}

#[tokio::test]
async fn a_successor_that_a_key_made_keeps_end_and_bucket_however_often() {
    let scene = Scene::new(Maker::ExpiringLimited).await;
    let end = scene.stored(&scene.token).await.expires_at;
    let mut token = scene.token.clone();
    let mut made = 0;
    for _ in 0..5 {
        for _ in 0..2 {
            let body = r#"{"target":"https://example.com/"}"#;
            let answer = scene
                .by_key(&token, Method::POST, "/api/v1/links", body)
                .await;
            made += u64::from(answer.status == 201);
        }
        let path = format!("/api/v1/keys/{}/rotate", prefix_of(&token));
        let body = r#"{"overlap_seconds":0}"#;
        let rotated = scene.by_key(&token, Method::POST, &path, body).await;
        assert!(!scene.works(&token).await, "no overlap");
        rotated.json()["token"]
            .as_str()
            .unwrap()
            .clone_into(&mut token);
        assert_eq!(scene.stored(&token).await.expires_at, end);
        // Time goes by, and gives none of it back.
        scene.world.clock.advance(Duration::from_secs(60));
    }
    assert_eq!(made, LIMIT);
    scene.world.clock.advance(HOUR);
    assert!(!scene.works(&token).await);
}

#[tokio::test]
async fn a_rotation_by_its_user_gives_the_key_a_new_life_and_the_old_limit() {
    let scene = Scene::new(Maker::ExpiringLimited).await;
    let world = &scene.world;
    let cookie = format!("__Host-curt_session={}", world.session(ADA).await);
    let headers = [("cookie", cookie.as_str()), ("origin", BASE)];
    world.clock.advance(HOUR / 2);
    for _ in 0..LIMIT {
        let body = r#"{"target":"https://example.com/"}"#;
        let made = scene.by_key(&scene.token, Method::POST, "/api/v1/links", body);
        assert_eq!(made.await.status, 201);
    }
    let path = format!("/api/v1/keys/{}/rotate", prefix_of(&scene.token));
    let rotated = send(world, Method::POST, &path, &headers, "").await;
    let token = rotated.json()["token"].as_str().unwrap().to_owned();
    let key = rotated.json()["key"].clone();
    assert_eq!(key["expires_at"], "2026-01-01T01:30:00.000Z");
    assert_eq!(key["parent"], Value::Null);
    let body = r#"{"target":"https://example.com/"}"#;
    let more = scene
        .by_key(&token, Method::POST, "/api/v1/links", body)
        .await;
    assert_eq!(more.problem(), "rate-limited");
    // What replaced a key is not made by it: the old one can be ended before its time.
    let path = format!("/api/v1/keys/{}", prefix_of(&scene.token));
    let ended = send(world, Method::DELETE, &path, &headers, "").await;
    assert_eq!(ended.status, 204);
    assert!(scene.works(&token).await && !scene.works(&scene.token).await);
}

#[tokio::test]
async fn a_key_is_not_cut_off_by_revoking_the_one_that_it_replaced() {
    let scene = Scene::new(Maker::Plain).await;
    let old = prefix_of(&scene.token).to_owned();
    let path = format!("/api/v1/keys/{old}/rotate");
    let rotated = scene.by_key(&scene.token, Method::POST, &path, "").await;
    let new = rotated.json()["token"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/keys/{old}");
    let refused = scene.by_key(&new, Method::DELETE, &path, "").await;
    assert_eq!(refused.problem(), "scope-missing");
    assert!(scene.works(&new).await && scene.works(&scene.token).await);
    // By anybody else, both end: the old one may have leaked before it replaced itself.
    let ended = scene.by_key(&scene.other, Method::DELETE, &path, "").await;
    assert_eq!(ended.status, 204);
    assert!(!scene.works(&new).await && !scene.works(&scene.token).await);
    let listed = scene.by_key(&scene.other, Method::GET, "/api/v1/keys", "");
    let listed = listed.await.json();
    let keys = listed["keys"].as_array().unwrap();
    let found = keys.iter().find(|key| key["prefix"] == prefix_of(&new));
    assert_eq!(found.unwrap()["parent"], old.as_str());
}

#[tokio::test]
async fn clicks_of_links_count_into_the_limit_of_the_first_key() {
    let world = World::new().await;
    let rule = QuotaRule {
        amount: 3,
        period: HOUR,
    };
    let key = NewKey {
        user: ADA,
        name: "maker".to_owned(),
        scopes: MEMBER.into_iter().collect(),
        allowance: Allowance {
            creations: None,
            redirections: Some(rule),
        },
        expires_at: None,
    };
    let keys = &world.accounts.api_keys;
    let issued = keys.issue(key, Scopes::ALL, Origin::OPERATOR).await;
    let parent = issued.unwrap().token;
    let by = [("x-api-key", parent.as_str())];
    let made = send(&world, Method::POST, "/api/v1/keys", &by, r#"{"name":"n"}"#).await;
    let child = made.json()["token"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/keys/{}/rotate", prefix_of(&child));
    let rotated = send(&world, Method::POST, &path, &by, "").await;
    let successor = rotated.json()["token"].as_str().unwrap().to_owned();
    let mut clicks = Vec::new();
    for (token, alias) in [(&parent, "p1"), (&child, "c1"), (&successor, "s1")] {
        let body = format!(r#"{{"target":"https://example.com/","alias":"{alias}"}}"#);
        let by = [("x-api-key", token.as_str())];
        let link = send(&world, Method::POST, "/api/v1/links", &by, &body).await;
        assert_eq!(link.status, 201);
    }
    for alias in ["p1", "c1", "s1", "p1", "c1", "s1"] {
        clicks.push(world.browse(&format!("/{alias}")).await.status.as_u16());
    }
    assert_eq!(clicks, [302, 302, 302, 429, 429, 429]);
}
