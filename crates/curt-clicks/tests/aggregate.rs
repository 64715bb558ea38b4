//! Rollups of clicks: exact, the same in any order and in any windows, and never larger than allowed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use curt_clicks::aggregate::{Aggregate, AggregateSettings, Aggregated, SaltWanted};
use curt_clicks::classify::{AddressList, ReferenceData};
use curt_clicks::record::{ClickRecord, Method, Outcome, UtmText};
use curt_core::click_block::{Block, ClickPlace, NewBlock};
use curt_core::ports::{self, CounterWindow, StreamId, StreamPartition};
use curt_core::varint::Damaged;
use curt_core::{
    Attribution, Click, ClickClass, ClickOutcome, ClickSubject, Day, Dimension, DomainId, LinkId,
    LinkRef, OwnerId, PackedTags, Sketch, SubjectDay, UnixMillis,
};
use mmdb_writer::{Value, Writer};
use proptest::prelude::*;
use proptest::sample::select;

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const PARTITION: StreamPartition = StreamPartition {
    stream: StreamId(7),
    number: 1,
};
const HOUR: Duration = Duration::from_secs(3_600);
const FIREFOX: &[u8] = b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

fn click(key: &str) -> ClickRecord<'_> {
    ClickRecord {
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
        utm: UtmText::default(),
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

fn new_aggregate(settings: AggregateSettings) -> Aggregate {
    Aggregate::new(settings, Arc::new(ReferenceData::default()))
}

fn add(aggregate: &mut Aggregate, click: &ClickRecord<'_>) {
    while let Err(SaltWanted(day)) = aggregate.add(click, NOW) {
        aggregate.salts().give(day, &[day.number() as u8; 32]);
    }
}

fn aggregated(clicks: &[ClickRecord<'_>]) -> Aggregated {
    let mut aggregate = new_aggregate(AggregateSettings::default());
    clicks.iter().for_each(|click| add(&mut aggregate, click));
    take(&mut aggregate)
}

fn take(aggregate: &mut Aggregate) -> Aggregated {
    aggregate.take(PARTITION, 40)
}

/// The single clicks of a window.
fn clicks_of(aggregated: &Aggregated) -> Vec<Click> {
    let read = |block: &NewBlock| -> Result<Vec<Click>, Damaged> {
        let block = Block::read(&block.bytes)?;
        let clicks = block.clicks()?;
        let rows = 0..block.places().len();
        rows.map(|row| clicks.get(row)).collect()
    };
    let blocks = aggregated.blocks.iter().map(read);
    blocks
        .flat_map(|clicks| clicks.unwrap_or_else(|damaged| panic!("{damaged}")))
        .collect()
}

/// Whether clicks are counted for the subject itself and not as for an owner or a tag.
fn is_own(subject: &ClickSubject) -> bool {
    matches!(subject, ClickSubject::Link(..) | ClickSubject::Orphans)
}

/// Everything counted in any number of windows for links and orphans.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted {
    rollups: BTreeMap<(ClickSubject, UnixMillis, Dimension, Arc<str>), u64>,
    visitors: BTreeMap<(ClickSubject, Day), Sketch>,
}

impl Counted {
    fn with(self, aggregated: &Aggregated) -> Self {
        self.with_days(aggregated.days.iter().filter(|day| is_own(&day.subject)))
    }

    fn with_days<'a>(mut self, days: impl IntoIterator<Item = &'a SubjectDay>) -> Self {
        for day in days {
            for sum in &day.rollups {
                assert_eq!(Day::of(sum.hour), day.day);
                let value = (
                    day.subject.clone(),
                    sum.hour,
                    sum.dimension,
                    sum.value.clone(),
                );
                *self.rollups.entry(value).or_default() += sum.count;
            }
            let place = (day.subject.clone(), day.day);
            self.visitors.entry(place).or_default().merge(&day.visitors);
        }
        self
    }

    fn of(clicks: &[ClickRecord<'_>]) -> Self {
        Self::default().with(&aggregated(clicks))
    }

    /// Values and counts of one dimension, over all hours.
    fn values(&self, subject: &ClickSubject, dimension: Dimension) -> BTreeMap<&str, u64> {
        let mut values = BTreeMap::new();
        for ((of, _, by, value), count) in &self.rollups {
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
fn a_persons_click_counts_once_in_every_dimension() {
    let counted = Counted::of(&[click("abc"), click("abc")]);
    for (dimension, value) in [
        (Dimension::Class, "human"),
        (Dimension::Country, "unknown"),
        (Dimension::Browser, "Firefox"),
        (Dimension::System, "Linux"),
        (Dimension::Device, "desktop"),
        (Dimension::Referrer, "news.example"),
        (Dimension::Language, "de"),
        (Dimension::ReferrerGroup, "other"),
    ] {
        let expected = BTreeMap::from([(value, 2)]);
        assert_eq!(counted.values(&link("abc"), dimension), expected);
    }
    assert_eq!(counted.rollups.len(), 8);
    assert_eq!(counted.visitors.len(), 1);
}

#[test]
fn details_count_where_there_are_any() {
    let written = |record: Value| {
        let mut writer = Writer::new("test");
        let network: ipnet::IpNet = "198.51.100.0/24".parse().unwrap();
        writer.insert_value(network, record).unwrap();
        AddressList::from_bytes(writer.to_bytes().unwrap()).unwrap()
    };
    let names = Value::map([("en", Value::from("Bonn"))]);
    let reference = ReferenceData {
        countries: Arc::new(written(Value::map([
            ("city", Value::map([("names", names)])),
            ("country", Value::map([("iso_code", Value::from("DE"))])),
        ]))),
        networks: Arc::new(written(Value::map([(
            "autonomous_system_organization",
            Value::from("Example Telecom"),
        )]))),
        ..ReferenceData::default()
    };
    let mut aggregate = Aggregate::new(AggregateSettings::default(), Arc::new(reference));
    let target = b"https://a.example/?utm_source=news&utm_medium=mail&utm_campaign=May&utm_term=t";
    let tagged = ClickRecord {
        referrer: b"https://www.google.co.uk/",
        utm: UtmText::find(target, Some("utm_content=top&utm_source=mine")),
        ..click("abc")
    };
    let elsewhere = ClickRecord {
        address: from(1),
        referrer: b"",
        ..click("abc")
    };
    let bot = ClickRecord {
        agent: b"curl/8.7.1",
        ..tagged
    };
    for click in [tagged, elsewhere, bot] {
        add(&mut aggregate, &click);
    }
    let aggregated = take(&mut aggregate);
    let clicks = clicks_of(&aggregated);
    let counted = Counted::default().with(&aggregated);
    let details = [
        (Dimension::UtmSource, "news"),
        (Dimension::UtmMedium, "mail"),
        (Dimension::UtmCampaign, "May"),
        (Dimension::UtmTerm, "t"),
        (Dimension::UtmContent, "top"),
        (Dimension::City, "Bonn, DE"),
        (Dimension::Network, "Example Telecom"),
    ];
    for (dimension, value) in details {
        let expected = BTreeMap::from([(value, 1)]);
        assert_eq!(counted.values(&link("abc"), dimension), expected);
        let kept = clicks.iter().map(|click| click.value(dimension));
        assert_eq!(kept.collect::<Vec<_>>(), [Some(value), None, Some(value)]);
    }
    assert_eq!(
        counted.values(&link("abc"), Dimension::ReferrerGroup),
        BTreeMap::from([("direct", 1), ("search", 1)])
    );
    assert_eq!(&*clicks[0].country, "DE");
}

#[test]
fn what_is_not_a_persons_counts_in_the_total_alone() {
    let bot = ClickRecord {
        agent: b"curl/8.7.1",
        ..click("abc")
    };
    let ahead = ClickRecord {
        prefetch: true,
        ..click("abc")
    };
    let head = ClickRecord {
        method: Method::Head,
        ..click("abc")
    };
    let counted = Counted::of(&[bot, ahead, ahead, head, head, head]);
    let classes = counted.values(&link("abc"), Dimension::Class);
    assert_eq!(
        classes,
        BTreeMap::from([("bot", 1), ("prefetch", 2), ("head", 3)])
    );
    assert_eq!(counted.rollups.len(), 3);
    assert!(counted.visitors.values().all(Sketch::is_empty));
}

#[test]
fn orphans_are_counted_together_by_cause_and_key() {
    let absent = |key| ClickRecord {
        outcome: Outcome::Absent,
        ..click(key)
    };
    let base = ClickRecord {
        outcome: Outcome::Base,
        ..click("")
    };
    let odd = ClickRecord {
        key: b"a\xff\n/b",
        ..absent("")
    };
    let no_key = ClickRecord {
        key: b"no key",
        ..click("")
    };
    let long = "k".repeat(100);
    let clicks = [
        absent("wp-login"),
        absent("wp-login"),
        base,
        odd,
        no_key,
        absent(&long),
    ];
    let counted = Counted::of(&clicks);
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
    assert_eq!(counted.total(&orphans, Dimension::Class), 6);
    assert_eq!(counted.total(&orphans, Dimension::Country), 6);
}

#[test]
fn links_of_the_same_key_on_two_domains_are_two() {
    let other = ClickRecord {
        domain: DomainId(7),
        ..click("abc")
    };
    let days = aggregated(&[click("abc"), other]).days;
    assert_eq!(days.iter().filter(|day| is_own(&day.subject)).count(), 2);
}

#[test]
fn the_future_is_now_and_the_past_stays() {
    let at = |at| ClickRecord { at, ..click("abc") };
    let soon = NOW.plus(Duration::from_secs(59));
    let clicks = [
        at(NOW.plus(HOUR * 24 * 400)),
        at(soon),
        at(NOW.minus(HOUR * 24 * 400)),
        at(UnixMillis(-5)),
        at(UnixMillis(i64::MIN)),
        at(UnixMillis(i64::MAX)),
    ];
    let counted = Counted::of(&clicks);
    let hours: Vec<(UnixMillis, u64)> = counted
        .rollups
        .iter()
        .filter(|((_, _, dimension, _), _)| *dimension == Dimension::Class)
        .map(|((_, hour, _, _), count)| (*hour, *count))
        .collect();
    let long_ago = NOW.minus(HOUR * 24 * 400).hour();
    assert_eq!(hours, [(UnixMillis(0), 2), (long_ago, 1), (NOW.hour(), 3)]);
}

#[test]
fn a_click_that_waits_for_its_salt_has_not_counted() {
    let mut aggregate = new_aggregate(AggregateSettings::default());
    let today = Day::of(NOW);
    assert_eq!(aggregate.add(&click("abc"), NOW), Err(SaltWanted(today)));
    assert!(aggregate.is_empty() && take(&mut aggregate).days.is_empty());
    let bot = ClickRecord {
        agent: b"curl/8.7.1",
        ..click("abc")
    };
    assert_eq!(aggregate.add(&bot, NOW), Ok(()));
    aggregate.salts().give(today, &[1; 32]);
    assert_eq!(aggregate.add(&click("abc"), NOW), Ok(()));
    aggregate.salts().forget(today.next());
    assert_eq!(aggregate.add(&click("abc"), NOW), Err(SaltWanted(today)));
}

fn seen(salt: u8, clicks: &[ClickRecord<'_>]) -> Sketch {
    let mut aggregate = new_aggregate(AggregateSettings::default());
    for click in clicks {
        while let Err(SaltWanted(day)) = aggregate.add(click, NOW) {
            aggregate.salts().give(day, &[salt; 32]);
        }
    }
    let mut all = Sketch::new();
    let days = take(&mut aggregate).days;
    days.iter().for_each(|day| all.merge(&day.visitors));
    all
}

#[test]
fn visitors_are_told_apart_by_address_and_browser() {
    let person = click("abc");
    let mapped = IpAddr::V6(Ipv4Addr::new(198, 51, 100, 7).to_ipv6_mapped());
    let same = ClickRecord {
        address: mapped,
        referrer: b"",
        ..click("abc")
    };
    let elsewhere = ClickRecord {
        address: from(1),
        ..person
    };
    let other_browser = ClickRecord {
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
    assert_eq!(seen(1, &[person]), seen(1, &[click("xyz")]));
}

#[test]
fn a_window_keeps_every_value_so_that_the_store_can_tell_which_are_frequent() {
    let clicks = 5_000_u64;
    let referrers: Vec<String> = (0..clicks)
        .map(|n| format!("https://spam-{n}.example/"))
        .collect();
    let mut aggregate = new_aggregate(AggregateSettings {
        keeps_clicks: false,
        ..AggregateSettings::default()
    });
    for referrer in &referrers {
        add(
            &mut aggregate,
            &ClickRecord {
                referrer: referrer.as_bytes(),
                ..click("abc")
            },
        );
    }
    add(
        &mut aggregate,
        &ClickRecord {
            referrer: referrers[0].as_bytes(),
            ..click("abc")
        },
    );
    let aggregated = take(&mut aggregate);
    let counted = Counted::default().with(&aggregated);
    let by_referrer = counted.values(&link("abc"), Dimension::Referrer);
    assert_eq!(by_referrer.len() as u64, clicks);
    assert_eq!(by_referrer["spam-0.example"], 2);
    assert_eq!(counted.total(&link("abc"), Dimension::Referrer), clicks + 1);
    assert_eq!(counted.total(&link("abc"), Dimension::Class), clicks + 1);
}

#[test]
fn clicks_are_kept_in_order_and_without_address() {
    let absent = ClickRecord {
        outcome: Outcome::Absent,
        agent: b"curl/8.7.1",
        ..click("gone")
    };
    let clicks = [click("abc"), absent];
    let rows = clicks_of(&aggregated(&clicks));
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].outcome, ClickOutcome::Link(id("abc"), 1));
    assert_eq!(
        (rows[0].class, &*rows[0].referrer),
        (ClickClass::Human, "news.example")
    );
    assert_eq!(rows[1].outcome, ClickOutcome::Absent("gone".into()));
    assert_eq!((rows[1].class, &*rows[1].device), (ClickClass::Bot, "bot"));
    assert!(rows.iter().all(|row| row.address.is_none()));
    let mut keeping = new_aggregate(AggregateSettings {
        keeps_addresses: true,
        ..AggregateSettings::default()
    });
    add(&mut keeping, &clicks[0]);
    let kept = clicks_of(&take(&mut keeping));
    assert_eq!(kept[0].address, Some(clicks[0].address));
    let mut without = new_aggregate(AggregateSettings {
        keeps_clicks: false,
        ..AggregateSettings::default()
    });
    add(&mut without, &clicks[0]);
    assert!(take(&mut without).blocks.is_empty());
}

/// A stream of any length goes through an aggregate of bounded size, and the windows add up.
#[test]
fn an_aggregate_tells_what_it_holds_before_that_is_too_much() {
    const CLICKS: u32 = 50_000;
    const BYTES_MAX: usize = 100_000;
    for keeps_clicks in [false, true] {
        let settings = AggregateSettings {
            keeps_clicks,
            ..AggregateSettings::default()
        };
        let mut aggregate = new_aggregate(settings);
        let (mut clicks, mut users, mut windows) = (0, 0, 0);
        for number in 0..CLICKS {
            let key = format!("link{}", number % 5_003);
            let referrer = format!("https://{}.example/", number % 7_919);
            add(
                &mut aggregate,
                &ClickRecord {
                    address: from(number),
                    referrer: referrer.as_bytes(),
                    ..click(&key)
                },
            );
            assert!(aggregate.memory_bytes() <= BYTES_MAX + 10_000);
            if aggregate.memory_bytes() >= BYTES_MAX || number == CLICKS - 1 {
                let aggregated = take(&mut aggregate);
                assert_eq!(aggregate.memory_bytes(), 0);
                let days = aggregated.days.iter();
                let own = days.filter(|day| is_own(&day.subject));
                let rollups = own.flat_map(|day| &day.rollups);
                let of = |dimension| {
                    let rollups = rollups
                        .clone()
                        .filter(move |sum| sum.dimension == dimension);
                    rollups.map(|sum| sum.count).sum::<u64>()
                };
                clicks += of(Dimension::Class);
                users += of(Dimension::Referrer);
                windows += 1;
            }
        }
        assert_eq!((clicks, users), (u64::from(CLICKS), u64::from(CLICKS)));
        assert!(windows > 20, "{windows}");
    }
}

/// All clicks of a subject.
fn total_of(aggregated: &Aggregated, subject: &ClickSubject) -> u64 {
    let days = aggregated.days.iter().filter(|day| day.subject == *subject);
    let rollups = days.flat_map(|day| &day.rollups);
    let classes = rollups.filter(|sum| sum.dimension == Dimension::Class);
    classes.map(|sum| sum.count).sum()
}

/// A click out of few enough possibilities that many are alike.
fn any_click() -> impl Strategy<Value = ClickRecord<'static>> {
    const PHONE: &[u8] = b"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";
    const KEYS: &[&[u8]] = &[b"a", b"b", b"", b"\xff"];
    const AGENTS: &[&[u8]] = &[FIREFOX, PHONE, b"curl/8.7.1"];
    const REFERRERS: &[&[u8]] = &[b"", b"https://a.example/", b"https://b.example/x"];
    const LANGUAGES: &[&[u8]] = &[b"", b"en", b"fr-CA"];
    const OUTCOMES: &[Outcome] = &[Outcome::Redirected, Outcome::Absent, Outcome::Base];
    const QUERIES: &[&str] = &["", "utm_term=a", "utm_term=b&utm_medium=c"];
    const METHODS: &[Method] = &[Method::Get, Method::Head];
    const TAGS: &[&[u8]] = &[b"", b"\x03red", b"\x03red\x04blue"];
    let asked = (
        select(KEYS),
        select(OUTCOMES),
        select(METHODS),
        any::<bool>(),
    );
    let of = (1..3_u32, 0..3_u64, select(TAGS));
    let headers = (
        select(AGENTS),
        select(REFERRERS),
        select(LANGUAGES),
        select(QUERIES),
    );
    (asked, of, headers, 0..2_000_u32, 0..50_u32).prop_map(
        |(
            (key, outcome, method, prefetch),
            (generation, owner, tags),
            (agent, referrer, language, query),
            address,
            hours,
        )| ClickRecord {
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
            utm: UtmText::find(b"https://a.example/?utm_source=own", Some(query)),
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
        clicks in prop::collection::vec(any_click(), 0..300),
        windows in prop::collection::vec(1_usize..60, 1..10),
        turned in any::<prop::sample::Index>(),
    ) {
        let whole = Counted::of(&clicks);
        let mut other_order = clicks.clone();
        other_order.rotate_left(turned.index(clicks.len() + 1).min(clicks.len()));
        other_order.reverse();
        let mut aggregate = new_aggregate(AggregateSettings::default());
        let (mut parts, mut rows, mut rest) = (Counted::default(), 0, &*other_order);
        for window in windows.iter().cycle() {
            let (now, later) = rest.split_at((*window).min(rest.len()));
            now.iter().for_each(|click| add(&mut aggregate, click));
            let aggregated = take(&mut aggregate);
            prop_assert_eq!(aggregated.clicks, now.len() as u64);
            prop_assert_eq!(total_of(&aggregated, &ClickSubject::Everything), now.len() as u64);
            rows += clicks_of(&aggregated).len();
            parts = parts.with(&aggregated);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(&parts, &whole);
        prop_assert_eq!(rows, clicks.len());
        let classes = whole.rollups.iter().filter(|((_, _, dimension, _), _)| *dimension == Dimension::Class);
        prop_assert_eq!(classes.map(|(_, count)| count).sum::<u64>(), clicks.len() as u64);
    }

    /// What a fast store adds up and keeps is the window.
    #[test]
    fn counters_give_back_what_was_added(
        clicks in prop::collection::vec(any_click(), 0..300),
        additions in prop::collection::vec(1_usize..60, 1..10),
    ) {
        let settings = AggregateSettings { keeps_addresses: true, ..AggregateSettings::default() };
        let mut aggregate = new_aggregate(settings);
        let (mut counts, mut pieces) = (BTreeMap::new(), Vec::new());
        let (mut rest, mut additions) = (&*clicks, additions.into_iter().cycle());
        while !rest.is_empty() {
            let (now, later) = rest.split_at(additions.next().unwrap_or(1).min(rest.len()));
            now.iter().for_each(|click| add(&mut aggregate, click));
            let part = aggregate.take(PARTITION, 7);
            for counted in part.counts() {
                *counts.entry(counted.name).or_default() += counted.count;
            }
            pieces.push(part.piece());
            rest = later;
        }
        let counted = |(name, count)| ports::Counted { name, count };
        let window = CounterWindow {
            from: 7,
            to: 7 + clicks.len() as u64,
            counts: counts.into_iter().map(counted).collect(),
            pieces,
        };
        let back = Aggregated::from_counters(PARTITION, &window).unwrap();
        clicks.iter().for_each(|click| add(&mut aggregate, click));
        let whole = aggregate.take(PARTITION, 7);
        let of = |days: &[SubjectDay]| Counted::default().with_days(days);
        prop_assert_eq!(of(&back.days), of(&whole.days));
        prop_assert_eq!((back.clicks, clicks_of(&back)), (whole.clicks, clicks_of(&whole)));
        let places = |aggregated: &Aggregated| -> Vec<ClickPlace> {
            let blocks = aggregated.blocks.iter();
            blocks.flat_map(|block| Block::read(&block.bytes).unwrap().places()).collect()
        };
        prop_assert_eq!(places(&back), places(&whole));
    }
}

#[test]
fn a_window_of_another_version_is_not_read() {
    let part = aggregated(&[click("a")]);
    let window = CounterWindow {
        counts: part.counts(),
        pieces: vec![part.piece()],
        ..CounterWindow::default()
    };
    let read = |window: &CounterWindow| Aggregated::from_counters(PARTITION, window);
    assert_eq!(read(&window).unwrap().clicks, 1);
    let mut newer = window.clone();
    newer.pieces[0][0] += 1;
    assert_eq!(read(&newer), Err(Damaged));
    for kept in 0..window.pieces[0].len() {
        let mut cut = window.clone();
        cut.pieces[0].truncate(kept);
        // What ends between two blocks is whole.
        assert!(kept > 2 || read(&cut).is_err(), "{kept} bytes");
    }
    let mut foreign = window.clone();
    foreign.counts[0].name = (*b"\x01\x09\x00").into();
    assert_eq!(read(&foreign), Err(Damaged));
}
