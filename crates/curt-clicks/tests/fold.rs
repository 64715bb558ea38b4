//! Sums of visits: exact, the same in any order and in any windows, and never larger than allowed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use curt_clicks::classify::Countries;
use curt_clicks::fold::{Fold, FoldSettings, Folded, SaltWanted};
use curt_clicks::record::{Method, Outcome, Visit};
use curt_core::{
    Attribution, ClickSubject, Day, Dimension, DomainId, LinkId, LinkRef, OwnerId, PackedTags,
    Sketch, UnixMillis, VisitKind, Visited,
};
use proptest::prelude::*;
use proptest::sample::select;

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);
const FIREFOX: &[u8] = b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

fn visit(key: &str) -> Visit<'_> {
    Visit {
        at: NOW,
        domain: DomainId::DEFAULT,
        key: key.as_bytes(),
        generation: 1,
        outcome: Outcome::Redirected,
        method: Method::Get,
        prefetch: false,
        address: IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7)),
        agent: FIREFOX,
        referrer: b"https://news.example/",
        language: b"de-DE",
        attribution: Attribution::default(),
    }
}

fn from(number: u32) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(
        0x2001,
        0xdb8,
        0,
        0,
        0,
        0,
        (number >> 16) as u16,
        number as u16,
    ))
}

fn id(key: &str) -> LinkId {
    let named = LinkRef {
        domain: DomainId::DEFAULT,
        key,
    };
    named.to_id().unwrap_or_else(|| panic!("{key} is no key"))
}

fn link(key: &str) -> ClickSubject {
    ClickSubject::Link(id(key), 1)
}

fn fold(settings: FoldSettings) -> Fold {
    Fold::new(settings, Arc::new(Countries::none()))
}

fn add(fold: &mut Fold, visit: &Visit<'_>) {
    while let Err(SaltWanted(day)) = fold.add(visit, NOW) {
        fold.salts().give(day, &[day.number() as u8; 32]);
    }
}

fn folded(visits: &[Visit<'_>]) -> Folded {
    let mut fold = fold(FoldSettings::default());
    visits.iter().for_each(|visit| add(&mut fold, visit));
    fold.take()
}

/// Everything counted in any number of windows.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted {
    sums: BTreeMap<(ClickSubject, UnixMillis, Dimension, Box<str>), u64>,
    visitors: BTreeMap<(ClickSubject, Day), Sketch>,
}

impl Counted {
    fn with(mut self, folded: &Folded) -> Self {
        for day in folded.days.iter().map(|day| &day.counted) {
            for sum in &day.sums {
                assert_eq!(Day::of(sum.hour), day.day);
                let value = (
                    day.subject.clone(),
                    sum.hour,
                    sum.dimension,
                    sum.value.clone(),
                );
                *self.sums.entry(value).or_default() += sum.count;
            }
            let place = (day.subject.clone(), day.day);
            self.visitors.entry(place).or_default().merge(&day.visitors);
        }
        self
    }

    fn of(visits: &[Visit<'_>]) -> Self {
        Self::default().with(&folded(visits))
    }

    /// Values and counts of one dimension, over all hours.
    fn values(&self, subject: &ClickSubject, dimension: Dimension) -> BTreeMap<&str, u64> {
        let mut values = BTreeMap::new();
        for ((of, _, by, value), count) in &self.sums {
            if of == subject && *by == dimension {
                *values.entry(&**value).or_default() += count;
            }
        }
        values
    }

    fn total(&self, subject: &ClickSubject, dimension: Dimension) -> u64 {
        self.values(subject, dimension).values().sum()
    }
}

#[test]
fn a_persons_visit_counts_once_in_every_dimension() {
    let counted = Counted::of(&[visit("abc"), visit("abc")]);
    for (dimension, value) in [
        (Dimension::Kind, "human"),
        (Dimension::Country, "unknown"),
        (Dimension::Browser, "Firefox"),
        (Dimension::System, "Linux"),
        (Dimension::Device, "desktop"),
        (Dimension::Referrer, "news.example"),
        (Dimension::Language, "de"),
    ] {
        let expected = BTreeMap::from([(value, 2)]);
        assert_eq!(counted.values(&link("abc"), dimension), expected);
    }
    assert_eq!(counted.sums.len(), 7);
    assert_eq!(counted.visitors.len(), 1);
}

#[test]
fn what_is_not_a_persons_counts_in_the_total_alone() {
    let bot = Visit {
        agent: b"curl/8.7.1",
        ..visit("abc")
    };
    let ahead = Visit {
        prefetch: true,
        ..visit("abc")
    };
    let head = Visit {
        method: Method::Head,
        ..visit("abc")
    };
    let counted = Counted::of(&[bot, ahead, ahead, head, head, head]);
    let kinds = counted.values(&link("abc"), Dimension::Kind);
    assert_eq!(
        kinds,
        BTreeMap::from([("bot", 1), ("prefetch", 2), ("head", 3)])
    );
    assert_eq!(counted.sums.len(), 3);
    assert!(counted.visitors.values().all(Sketch::is_empty));
}

#[test]
fn orphans_are_counted_together_by_cause_and_key() {
    let absent = |key| Visit {
        outcome: Outcome::Absent,
        ..visit(key)
    };
    let base = Visit {
        outcome: Outcome::Base,
        ..visit("")
    };
    let odd = Visit {
        key: b"a\xff\n/b",
        ..absent("")
    };
    let no_key = Visit {
        key: b"no key",
        ..visit("")
    };
    let long = "k".repeat(100);
    let visits = [
        absent("wp-login"),
        absent("wp-login"),
        base,
        odd,
        no_key,
        absent(&long),
    ];
    let counted = Counted::of(&visits);
    let orphans = ClickSubject::Orphans;
    let causes = counted.values(&orphans, Dimension::Orphan);
    assert_eq!(causes, BTreeMap::from([("base_url", 1), ("not_found", 5)]));
    let cut = "k".repeat(64);
    let keys = [
        ("wp-login", 2),
        ("a\u{fffd}\u{fffd}/b", 1),
        ("no key", 1),
        (&*cut, 1),
    ];
    assert_eq!(
        counted.values(&orphans, Dimension::Key),
        BTreeMap::from(keys)
    );
    assert_eq!(counted.total(&orphans, Dimension::Kind), 6);
    assert_eq!(counted.total(&orphans, Dimension::Country), 6);
}

#[test]
fn links_of_the_same_key_on_two_domains_are_two() {
    let other = Visit {
        domain: DomainId(7),
        ..visit("abc")
    };
    assert_eq!(folded(&[visit("abc"), other]).days.len(), 2);
}

#[test]
fn the_future_is_now_and_the_past_stays() {
    let at = |at| Visit { at, ..visit("abc") };
    let soon = NOW.plus(Duration::from_secs(59));
    let visits = [
        at(NOW.plus(HOUR * 24 * 400)),
        at(soon),
        at(NOW.minus(HOUR * 24 * 400)),
        at(UnixMillis(-5)),
        at(UnixMillis(i64::MIN)),
        at(UnixMillis(i64::MAX)),
    ];
    let counted = Counted::of(&visits);
    let hours: Vec<(UnixMillis, u64)> = counted
        .sums
        .iter()
        .filter(|((_, _, dimension, _), _)| *dimension == Dimension::Kind)
        .map(|((_, hour, _, _), count)| (*hour, *count))
        .collect();
    let long_ago = NOW.minus(HOUR * 24 * 400).hour();
    assert_eq!(hours, [(UnixMillis(0), 2), (long_ago, 1), (NOW.hour(), 3)]);
}

#[test]
fn a_visit_that_waits_for_its_salt_has_not_counted() {
    let mut fold = fold(FoldSettings::default());
    let today = Day::of(NOW);
    assert_eq!(fold.add(&visit("abc"), NOW), Err(SaltWanted(today)));
    assert!(fold.is_empty() && fold.take().is_empty());
    let bot = Visit {
        agent: b"curl/8.7.1",
        ..visit("abc")
    };
    assert_eq!(fold.add(&bot, NOW), Ok(()));
    fold.salts().give(today, &[1; 32]);
    assert_eq!(fold.add(&visit("abc"), NOW), Ok(()));
    fold.salts().forget(today.next());
    assert_eq!(fold.add(&visit("abc"), NOW), Err(SaltWanted(today)));
}

fn seen(salt: u8, visits: &[Visit<'_>]) -> Sketch {
    let mut fold = fold(FoldSettings::default());
    for visit in visits {
        while let Err(SaltWanted(day)) = fold.add(visit, NOW) {
            fold.salts().give(day, &[salt; 32]);
        }
    }
    let mut all = Sketch::new();
    fold.take()
        .days
        .iter()
        .for_each(|day| all.merge(&day.counted.visitors));
    all
}

#[test]
fn visitors_are_told_apart_by_address_and_browser() {
    let person = visit("abc");
    let mapped = IpAddr::V6(Ipv4Addr::new(198, 51, 100, 7).to_ipv6_mapped());
    let same = Visit {
        address: mapped,
        referrer: b"",
        ..visit("abc")
    };
    let elsewhere = Visit {
        address: from(1),
        ..person
    };
    let other_browser = Visit {
        agent: b"Mozilla/5.0 (X11; Linux x86_64; rv:141.0) Gecko/20100101 Firefox/141.0",
        ..person
    };
    assert_eq!(seen(1, &[person, person, same]).estimate(), 1);
    assert_eq!(seen(1, &[person, elsewhere, other_browser]).estimate(), 3);
    // The same under every salt would be a lasting mark of the person.
    let mut two_days = seen(1, &[person]);
    two_days.merge(&seen(2, &[person]));
    assert_eq!(two_days.estimate(), 2);
    // The same for two links, so that an owner's visitors can be counted.
    assert_eq!(seen(1, &[person]), seen(1, &[visit("xyz")]));
}

#[test]
fn a_window_keeps_every_value_so_that_the_store_can_tell_which_are_frequent() {
    let visits = 5_000_u64;
    let referrers: Vec<String> = (0..visits)
        .map(|n| format!("https://spam-{n}.example/"))
        .collect();
    let mut fold = fold(FoldSettings {
        visits_max: None,
        ..FoldSettings::default()
    });
    for referrer in &referrers {
        add(
            &mut fold,
            &Visit {
                referrer: referrer.as_bytes(),
                ..visit("abc")
            },
        );
    }
    add(
        &mut fold,
        &Visit {
            referrer: referrers[0].as_bytes(),
            ..visit("abc")
        },
    );
    let folded = fold.take();
    let counted = Counted::default().with(&folded);
    let by_referrer = counted.values(&link("abc"), Dimension::Referrer);
    assert_eq!(by_referrer.len() as u64, visits);
    assert_eq!(by_referrer["spam-0.example"], 2);
    assert_eq!(counted.total(&link("abc"), Dimension::Referrer), visits + 1);
    assert_eq!(counted.total(&link("abc"), Dimension::Kind), visits + 1);
}

#[test]
fn visits_are_kept_in_order_and_without_address() {
    let absent = Visit {
        outcome: Outcome::Absent,
        agent: b"curl/8.7.1",
        ..visit("gone")
    };
    let visits = [visit("abc"), absent];
    let rows = folded(&visits).visits;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].visited, Visited::Link(id("abc"), 1));
    assert_eq!(
        (rows[0].kind, &*rows[0].referrer),
        (VisitKind::Human, "news.example")
    );
    assert_eq!(rows[1].visited, Visited::Absent("gone".into()));
    assert_eq!((rows[1].kind, &*rows[1].device), (VisitKind::Bot, "bot"));
    assert!(!format!("{:?}", folded(&visits)).contains("198.51.100.7"));
    let mut keeping = fold(FoldSettings {
        keeps_addresses: true,
        ..FoldSettings::default()
    });
    add(&mut keeping, &visits[0]);
    assert_eq!(keeping.take().visits[0].address, Some(visits[0].address));
    let mut without = fold(FoldSettings {
        visits_max: None,
        ..FoldSettings::default()
    });
    add(&mut without, &visits[0]);
    assert!(without.take().visits.is_empty());
}

/// A stream of any length goes through a fold of bounded size, and the windows add up.
#[test]
fn a_fold_says_that_it_is_full_before_it_is_too_large() {
    const VISITS: u32 = 50_000;
    let bounds = [
        FoldSettings {
            sums_max: 500,
            visits_max: None,
            ..FoldSettings::default()
        },
        FoldSettings {
            bytes_max: 100_000,
            visits_max: None,
            ..FoldSettings::default()
        },
        FoldSettings {
            visits_max: Some(300),
            ..FoldSettings::default()
        },
    ];
    for settings in bounds {
        let mut fold = fold(settings);
        let (mut visits, mut people, mut windows) = (0, 0, 0);
        for number in 0..VISITS {
            let key = format!("link{}", number % 5_003);
            let referrer = format!("https://{}.example/", number % 7_919);
            add(
                &mut fold,
                &Visit {
                    address: from(number),
                    referrer: referrer.as_bytes(),
                    ..visit(&key)
                },
            );
            assert!(fold.held_bytes() <= settings.bytes_max + 10_000);
            if fold.is_full() || number == VISITS - 1 {
                let folded = fold.take();
                assert_eq!(fold.held_bytes(), 0);
                assert!(folded.visits.len() <= settings.visits_max.unwrap_or(0));
                let sums = folded.days.iter().flat_map(|day| &day.counted.sums);
                assert!(sums.clone().count() <= settings.sums_max + 7);
                let of = |dimension| {
                    let sums = sums.clone().filter(move |sum| sum.dimension == dimension);
                    sums.map(|sum| sum.count).sum::<u64>()
                };
                visits += of(Dimension::Kind);
                people += of(Dimension::Referrer);
                windows += 1;
            }
        }
        assert_eq!((visits, people), (u64::from(VISITS), u64::from(VISITS)));
        assert!(windows > 20, "{windows}");
    }
}

/// A visit out of few enough possibilities that many are alike.
fn any_visit() -> impl Strategy<Value = Visit<'static>> {
    const PHONE: &[u8] = b"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";
    const KEYS: &[&[u8]] = &[b"a", b"b", b"", b"\xff"];
    const AGENTS: &[&[u8]] = &[FIREFOX, PHONE, b"curl/8.7.1"];
    const REFERRERS: &[&[u8]] = &[b"", b"https://a.example/", b"https://b.example/x"];
    const LANGUAGES: &[&[u8]] = &[b"", b"en", b"fr-CA"];
    const OUTCOMES: &[Outcome] = &[Outcome::Redirected, Outcome::Absent, Outcome::Base];
    const METHODS: &[Method] = &[Method::Get, Method::Head];
    const TAGS: &[&[u8]] = &[b"", b"\x03red", b"\x03red\x04blue"];
    let asked = (
        select(KEYS),
        select(OUTCOMES),
        select(METHODS),
        any::<bool>(),
    );
    let of = (1..3_u32, 0..3_u64, select(TAGS));
    let headers = (select(AGENTS), select(REFERRERS), select(LANGUAGES));
    (asked, of, headers, 0..2_000_u32, 0..50_u32).prop_map(
        |(
            (key, outcome, method, prefetch),
            (generation, owner, tags),
            (agent, referrer, language),
            address,
            hours,
        )| Visit {
            at: NOW.minus(HOUR * hours),
            domain: DomainId::DEFAULT,
            key,
            generation,
            outcome,
            method,
            prefetch,
            address: from(address),
            agent,
            referrer,
            language,
            attribution: Attribution {
                owner: OwnerId(owner),
                tags: PackedTags::from_packed(tags),
            },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_order_and_any_windows_give_the_same(
        visits in prop::collection::vec(any_visit(), 0..300),
        windows in prop::collection::vec(1_usize..60, 1..10),
        turned in any::<prop::sample::Index>(),
    ) {
        let whole = Counted::of(&visits);
        let mut other_order = visits.clone();
        other_order.rotate_left(turned.index(visits.len() + 1).min(visits.len()));
        other_order.reverse();
        let mut fold = fold(FoldSettings::default());
        let (mut parts, mut rows, mut rest) = (Counted::default(), 0, &*other_order);
        for window in windows.iter().cycle() {
            let (now, later) = rest.split_at((*window).min(rest.len()));
            now.iter().for_each(|visit| add(&mut fold, visit));
            let folded = fold.take();
            rows += folded.visits.len();
            parts = parts.with(&folded);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(&parts, &whole);
        prop_assert_eq!(rows, visits.len());
        let kinds = whole.sums.iter().filter(|((_, _, dimension, _), _)| *dimension == Dimension::Kind);
        prop_assert_eq!(kinds.map(|(_, count)| count).sum::<u64>(), visits.len() as u64);
    }
}
