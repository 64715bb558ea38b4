use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use curt_accounts::{
    AccountServices, AccountSettings, Credential, Guess, LimitSettings, Principal, policy,
};
use curt_core::clock::{Clock as _, ManualClock};
use curt_core::ports::{ApiKeys as _, Bucket, NewApiKey, QuotaReply, QuotaRule, Quotas};
use curt_core::{
    Allowance, ApiKeyNumber, DomainId, ErrorKind, Key, LinkId, OwnerId, PortError, PortResult,
    Role, Scopes,
};
use curt_memory::{MemoryAccounts, MemoryQuotas};

use crate::world::START;

struct Outage {
    inner: MemoryQuotas,
    failing: AtomicBool,
}

#[async_trait]
impl Quotas for Outage {
    async fn take(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<Vec<QuotaReply>> {
        if self.failing.load(Ordering::SeqCst) {
            let kind = ErrorKind::Unavailable;
            return Err(PortError::new(kind, "quotas", "take", "off"));
        }
        self.inner.take(buckets, amount).await
    }

    async fn give_back(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<()> {
        self.inner.give_back(buckets, amount).await
    }
}

struct Counted {
    clock: Arc<ManualClock>,
    quotas: Arc<Outage>,
    store: Arc<MemoryAccounts>,
    accounts: AccountServices,
}

fn counted(limits: LimitSettings) -> Counted {
    let clock = Arc::new(ManualClock::at(START));
    let quotas = Arc::new(Outage {
        inner: MemoryQuotas::new(clock.clone()),
        failing: AtomicBool::new(false),
    });
    let store = Arc::new(MemoryAccounts::new());
    let settings = AccountSettings::default();
    let accounts = AccountServices::new(
        settings,
        limits,
        store.clone(),
        quotas.clone(),
        clock.clone(),
    );
    Counted {
        clock,
        quotas,
        store,
        accounts: accounts.unwrap(),
    }
}

fn per_minute(amount: u64) -> Option<QuotaRule> {
    Some(QuotaRule {
        amount,
        period: Duration::from_secs(60),
    })
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn principal(user: u64, key: u32, own: Allowance, keys_own: Allowance) -> Principal {
    Principal {
        user: OwnerId(user),
        role: Role::Member,
        scopes: Scopes::ALL,
        via: Credential::ApiKey {
            number: ApiKeyNumber(key),
            bucket: ApiKeyNumber(key),
            prefix: "prefix00".into(),
            name: "laptop".into(),
            allowance: keys_own,
        },
        allowance: own,
    }
}

fn creations(amount: u64) -> Allowance {
    Allowance {
        creations: per_minute(amount),
        redirections: None,
    }
}

#[tokio::test]
async fn nothing_limits_where_no_rule_says_so() {
    let world = counted(LimitSettings::NONE);
    let limits = &world.accounts.limits;
    let (ip, link) = (
        address("192.0.2.7"),
        LinkId::new(DomainId::DEFAULT, Key::parse("plan").unwrap()),
    );
    let ann = principal(1, 1, Allowance::default(), Allowance::default());
    world.quotas.failing.store(true, Ordering::SeqCst);
    assert_eq!(limits.creations(None, ip, 9).await.unwrap(), None);
    assert_eq!(limits.creations(Some(&ann), ip, 9).await.unwrap(), None);
    assert_eq!(
        limits.redirections(OwnerId(1), Some(ApiKeyNumber(1))).await,
        None
    );
    assert_eq!(limits.misses(ip).await, None);
    let guess = limits.sign_ins(ip, "ann@example.com", None).await;
    assert_eq!(guess.unwrap().decision, None);
    assert_eq!(limits.sign_ups(ip).await.unwrap(), None);
    let guess = limits.password_checks(OwnerId(1)).await;
    assert_eq!(guess.unwrap().decision, None);
    let guess = limits.link_passwords(ip, &link).await;
    assert_eq!(guess.unwrap().decision, None);
}

#[tokio::test]
async fn creations_count_per_key_and_per_user_and_their_own_allowance_goes_first() {
    let world = counted(LimitSettings {
        creations_per_key: per_minute(2),
        creations_per_user: per_minute(3),
        creations_per_address: per_minute(1),
        ..LimitSettings::NONE
    });
    let limits = &world.accounts.limits;
    let ip = address("192.0.2.7");
    let plain = Allowance::default();
    let make = async |by: &Principal, count| {
        limits
            .creations(Some(by), ip, count)
            .await
            .unwrap()
            .unwrap()
    };
    let first = principal(1, 1, plain, plain);
    let second = principal(1, 2, plain, plain);
    let taken = make(&first, 2).await;
    assert!(taken.granted);
    assert_eq!((taken.name, taken.remaining), (policy::CREATE, 0));
    assert!(!make(&first, 1).await.granted, "the key's two are used up");
    assert!(make(&second, 1).await.granted, "the user has one left");
    let refused = make(&second, 1).await;
    assert_eq!(
        (refused.granted, refused.rule),
        (false, per_minute(3).unwrap())
    );
    assert!(
        make(&principal(2, 3, plain, plain), 2).await.granted,
        "another user"
    );

    let favoured = principal(3, 4, creations(10), creations(7));
    assert_eq!(make(&favoured, 7).await.rule, per_minute(7).unwrap());
    assert!(!make(&favoured, 1).await.granted);
    let session = Principal {
        via: Credential::Session { id: "id".into() },
        ..principal(3, 0, creations(10), plain)
    };
    assert_eq!(
        make(&session, 1).await.remaining,
        2,
        "the same user, without the key"
    );
    // Without credentials the address counts, and only then.
    assert!(
        limits
            .creations(None, ip, 1)
            .await
            .unwrap()
            .unwrap()
            .granted
    );
    assert!(
        !limits
            .creations(None, ip, 1)
            .await
            .unwrap()
            .unwrap()
            .granted
    );
}

#[tokio::test]
async fn waiting_as_told_is_enough() {
    let world = counted(LimitSettings {
        creations_per_address: per_minute(7),
        ..LimitSettings::NONE
    });
    let limits = &world.accounts.limits;
    let ip = address("192.0.2.7");
    let make = async |count| limits.creations(None, ip, count).await.unwrap().unwrap();
    make(7).await;
    let refused = make(3).await;
    assert!(!refused.granted && refused.retry_after > Duration::ZERO);
    world
        .clock
        .advance(refused.retry_after - Duration::from_millis(1));
    assert!(!make(3).await.granted);
    world.clock.advance(Duration::from_millis(1));
    assert!(make(3).await.granted);
    let never = make(8).await;
    assert_eq!((never.granted, never.retry_after), (false, Duration::MAX));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_at_the_boundary_do_not_overshoot() {
    let world = counted(LimitSettings {
        creations_per_key: per_minute(100),
        creations_per_user: per_minute(90),
        ..LimitSettings::NONE
    });
    let racers: Vec<_> = (0..64)
        .map(|_| {
            let limits = world.accounts.limits.clone();
            tokio::spawn(async move {
                let by = principal(1, 1, Allowance::default(), Allowance::default());
                let mut granted = 0;
                for _ in 0..10 {
                    let made = limits.creations(Some(&by), address("::1"), 1).await;
                    granted += u32::from(made.unwrap().unwrap().granted);
                }
                granted
            })
        })
        .collect();
    let mut granted = 0;
    for racer in racers {
        granted += racer.await.unwrap();
    }
    assert_eq!(granted, 90);
}

#[tokio::test]
async fn addresses_of_one_network_count_as_one() {
    let world = counted(LimitSettings {
        misses_per_address: per_minute(30),
        ..LimitSettings::NONE
    });
    let miss = async |text: &str| world.accounts.limits.misses(address(text)).await.unwrap();
    for number in 0..30 {
        let scanner = format!("2001:db8:1:2:{number:x}::1");
        assert!(miss(&scanner).await.granted);
    }
    let refused = miss("2001:db8:1:2:ffff::1").await;
    assert_eq!((refused.granted, refused.name), (false, policy::MISS));
    assert!(miss("2001:db8:1:3::1").await.granted, "a neighbour");
    for _ in 0..15 {
        assert!(miss("192.0.2.7").await.granted);
        assert!(miss("::ffff:192.0.2.7").await.granted);
    }
    assert!(!miss("192.0.2.7").await.granted);
}

#[tokio::test]
async fn guesses_count_per_address_and_per_account_in_any_case() {
    let world = counted(LimitSettings {
        sign_ins_per_address: per_minute(10),
        sign_ins_per_account: per_minute(20),
        ..LimitSettings::NONE
    });
    let guess = async |from: &str, email: &str| {
        let limits = &world.accounts.limits;
        let guess = limits.sign_ins(address(from), email, None).await;
        guess.unwrap().decision.unwrap()
    };
    for number in 0..10 {
        let email = format!("user{number}@example.com");
        assert!(guess("192.0.2.1", &email).await.granted);
    }
    assert!(!guess("192.0.2.1", "user11@example.com").await.granted);
    for number in 0..20 {
        let from = format!("198.51.100.{number}");
        assert!(guess(&from, "Ann@Example.com").await.granted);
    }
    let refused = guess("198.51.100.99", " ann@example.com").await;
    assert_eq!(
        (refused.granted, refused.rule),
        (false, per_minute(20).unwrap())
    );
    assert!(guess("198.51.100.99", "bob@example.com").await.granted);
}

#[tokio::test]
async fn whoever_signed_in_before_has_a_limit_of_their_own() {
    let world = counted(LimitSettings::default());
    let limits = &world.accounts.limits;
    let email = "ann@example.com";
    let guess = async |from: &str, browser| {
        let guess = limits.sign_ins(address(from), email, browser).await;
        guess.unwrap()
    };
    let is_granted = |guess: &Guess| guess.decision.unwrap().granted;
    // Right ones are given back, and make their address known.
    for _ in 0..50 {
        let right = guess("192.0.2.1", None).await;
        assert!(is_granted(&right));
        limits.give_back(right, true).await;
    }
    // What was neither right nor wrong makes nobody known.
    let broken = guess("192.0.2.2", None).await;
    limits.give_back(broken, false).await;
    let mut heard = 0;
    for number in 0..200 {
        let from = format!("198.51.100.{number}");
        heard += u32::from(is_granted(&guess(&from, None).await));
    }
    assert_eq!(heard, 10, "half of 20 in 10 minutes at once");
    assert!(!is_granted(&guess("192.0.2.2", None).await));
    // Known addresses and browsers are bounded too, each by itself.
    let mut heard = 0;
    for _ in 0..20 {
        for _ in 0..10 {
            heard += u32::from(is_granted(&guess("192.0.2.1", None).await));
        }
        world.clock.advance(Duration::from_secs(1));
    }
    assert!(
        (5..=10).contains(&heard),
        "10 a minute per address: {heard}"
    );
    for browser in ["one", "other"] {
        let mut heard = 0;
        for number in 0..100 {
            let from = format!("203.0.113.{number}");
            heard += u32::from(is_granted(&guess(&from, Some(browser)).await));
        }
        assert_eq!(heard, 10, "{browser}");
    }
}

#[tokio::test]
async fn tries_at_a_links_password_count_per_link_and_per_address_h13() {
    let world = counted(LimitSettings::default());
    let limits = &world.accounts.limits;
    let link = |key: &str| LinkId::new(DomainId::DEFAULT, Key::parse(key).unwrap());
    let plan = link("plan");
    let mut granted = 0;
    for number in 0..10_000_u32 {
        let from = IpAddr::from((number % 100).to_be_bytes());
        let guess = limits.link_passwords(from, &plan).await.unwrap();
        let said = guess.decision.unwrap();
        assert_eq!(said.name, policy::LINK_PASSWORD);
        granted += u32::from(said.granted);
    }
    assert_eq!(granted, 25, "half of 50 a minute at once");
    let one = address("192.0.2.7");
    let mut granted = 0;
    for _ in 0..100 {
        let said = limits.link_passwords(one, &link("other")).await;
        granted += u32::from(said.unwrap().decision.unwrap().granted);
    }
    assert_eq!(granted, 3);
    // Right ones take nothing from those who come after them.
    for _ in 0..100 {
        let right = limits.link_passwords(one, &link("third")).await.unwrap();
        assert!(right.decision.unwrap().granted);
        limits.give_back(right, true).await;
    }
}

#[tokio::test]
async fn redirections_count_by_the_rules_of_owner_and_key_as_last_read() {
    let world = counted(LimitSettings {
        redirections_per_user: per_minute(3),
        ..LimitSettings::NONE
    });
    let limits = &world.accounts.limits;
    let key = NewApiKey {
        prefix: "prefix00".into(),
        secret_hash: [7; 32],
        user: OwnerId(1),
        name: "laptop".into(),
        scopes: Scopes::ALL,
        allowance: Allowance {
            creations: None,
            redirections: per_minute(1),
        },
        created_at: START,
        expires_at: None,
        parent: None,
        bucket: None,
    };
    let number = world.store.add_api_key(&key).await.unwrap().unwrap();
    let click = async |owner, key| limits.redirections(OwnerId(owner), key).await;
    assert!(click(1, Some(number)).await.unwrap().granted);
    assert!(
        click(1, Some(number)).await.unwrap().granted,
        "the key's rule is not read yet"
    );
    let rules = limits.refresh_redirections().await.unwrap();
    assert!(rules.keys.contains_key(&number) && rules.other_users.is_some());
    assert!(click(1, Some(number)).await.unwrap().granted);
    let refused = click(1, Some(number)).await.unwrap();
    assert_eq!((refused.granted, refused.name), (false, policy::REDIRECT));
    assert!(click(2, None).await.unwrap().granted, "another owner");
    assert_eq!(click(0, None).await, None, "nobody's link");
}

#[tokio::test]
async fn with_the_counter_away_nothing_is_made_or_guessed_but_links_work() {
    let world = counted(LimitSettings {
        redirections_per_user: per_minute(0),
        ..LimitSettings::default()
    });
    let limits = &world.accounts.limits;
    let ip = address("192.0.2.7");
    let link = LinkId::new(DomainId::DEFAULT, Key::parse("plan").unwrap());
    assert!(!limits.redirections(OwnerId(1), None).await.unwrap().granted);
    world.quotas.failing.store(true, Ordering::SeqCst);
    for failed in [
        limits.creations(None, ip, 1).await,
        limits.sign_ups(ip).await,
        limits
            .sign_ins(ip, "ann@example.com", None)
            .await
            .map(|guess| guess.decision),
        limits
            .password_checks(OwnerId(1))
            .await
            .map(|guess| guess.decision),
        limits
            .link_passwords(ip, &link)
            .await
            .map(|guess| guess.decision),
    ] {
        assert!(failed.unwrap_err().is_transient());
    }
    assert_eq!(limits.redirections(OwnerId(1), None).await, None);
    assert_eq!(limits.misses(ip).await, None);
    world.quotas.failing.store(false, Ordering::SeqCst);
    assert!(!limits.redirections(OwnerId(1), None).await.unwrap().granted);
}

#[tokio::test]
async fn the_networks_of_one_site_have_a_limit_together() {
    let world = counted(LimitSettings {
        misses_per_address: per_minute(2),
        ipv6_site_factor: 3,
        ..LimitSettings::NONE
    });
    let limits = &world.accounts.limits;
    let miss = async |text: &str| limits.misses(address(text)).await.unwrap().granted;
    for network in 0..6 {
        assert!(miss(&format!("2001:db8:1:{network:x}::1")).await);
    }
    assert!(!miss("2001:db8:1:ffff::1").await, "the seventh network");
    assert!(miss("2001:db8:2::1").await, "another site");
    let now = world.clock.now();
    let is_held = |text: &str| limits.throttle_decision(address(text), now).is_some();
    assert!(is_held("2001:db8:1:1234::1"), "the whole site waits");
    assert!(!is_held("2001:db8:2::1") && !is_held("192.0.2.7"));
}

#[tokio::test]
async fn an_address_past_its_misses_is_held_until_it_may_miss_again() {
    let world = counted(LimitSettings {
        misses_per_address: per_minute(4),
        ..LimitSettings::NONE
    });
    let limits = &world.accounts.limits;
    let (scanner, other) = (address("192.0.2.7"), address("192.0.2.8"));
    for _ in 0..4 {
        assert!(limits.misses(scanner).await.unwrap().granted);
        assert!(
            limits
                .throttle_decision(scanner, world.clock.now())
                .is_none()
        );
        assert!(!limits.throttles_any(world.clock.now()));
    }
    let refused = limits.misses(scanner).await.unwrap();
    assert_eq!(refused.retry_after, Duration::from_secs(15));
    world.clock.advance(Duration::from_secs(5));
    let now = world.clock.now();
    assert!(limits.throttles_any(now));
    let throttle_decision = limits.throttle_decision(scanner, now).unwrap();
    assert_eq!(
        (throttle_decision.granted, throttle_decision.remaining),
        (false, 0)
    );
    assert_eq!(
        throttle_decision.retry_after,
        Duration::from_secs(10),
        "the rest"
    );
    assert_eq!(limits.throttle_decision(other, now), None);
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(limits.throttle_decision(scanner, world.clock.now()), None);
    assert!(!limits.throttles_any(world.clock.now()));
    assert!(limits.misses(scanner).await.unwrap().granted, "as told");
}

/// However somebody times their tries.
#[tokio::test]
async fn a_guard_keeps_its_number_in_every_period() {
    for amount in [1, 2, 3, 5, 10, 30, 50] {
        for step in [7, 100, 999, 2_000, 4_001] {
            let rule = per_minute(amount).unwrap();
            let world = counted(LimitSettings {
                misses_per_address: Some(LimitSettings::guard(rule)),
                ..LimitSettings::NONE
            });
            let mut granted: Vec<i64> = Vec::new();
            while world.clock.now().since(START) < Duration::from_secs(200) {
                let decision = world.accounts.limits.misses(address("192.0.2.7")).await;
                match decision.unwrap() {
                    said if said.granted => granted.push(world.clock.now().0),
                    // Nobody has more than who tries again as early as they may.
                    said => world
                        .clock
                        .advance(said.retry_after.min(Duration::from_millis(step))),
                }
            }
            let in_a_minute = |from: &i64| {
                let within = |at: &&i64| (*from..*from + 60_000).contains(*at);
                granted.iter().filter(within).count() as u64
            };
            let most = granted.iter().map(in_a_minute).max().unwrap();
            assert!(most <= amount, "{amount}/1m every {step} ms: {most}");
            assert!(most >= amount.div_ceil(2), "{amount}/1m: only {most}");
        }
    }
}
