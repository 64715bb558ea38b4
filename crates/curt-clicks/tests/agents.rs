//! Who is a person and who is not (E10), over a list of agents of every sort.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use curt_clicks::classify::{Classifier, ClickRules};
use curt_clicks::record::{ClickRecord, Method, Outcome, UtmText};
use curt_core::{Attribution, ClickClass, DomainId, UnixMillis};
use proptest::prelude::*;

/// Facts: class, browser, system and device of each agent, as a person would tell them.
const AGENTS: &str = include_str!("agents.tsv");

/// Agents that are known to be read wrong, each with the reason beside it.
const MISSES: [&str; 0] = [];

struct KnownAgent {
    /// Class, browser, system, device.
    fields: [&'static str; 4],
    agent: &'static str,
}

fn agents() -> Vec<KnownAgent> {
    let known = |line: &'static str| {
        let mut columns = line.splitn(5, '\t');
        KnownAgent {
            fields: std::array::from_fn(|_| columns.next().unwrap_or_default()),
            agent: columns.next().unwrap_or_default(),
        }
    };
    let lines = AGENTS.lines().filter(|line| !line.starts_with('#'));
    lines.map(known).collect()
}

fn click(agent: &[u8]) -> ClickRecord<'_> {
    ClickRecord {
        at: UnixMillis(0),
        domain: DomainId::DEFAULT,
        key: b"abc",
        generation: 1,
        outcome: Outcome::Redirected,
        method: Method::Get,
        prefetch: false,
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        agent,
        referrer: b"",
        language: b"",
        utm: UtmText::default(),
        attribution: Attribution::default(),
    }
}

fn classifier() -> Classifier {
    Classifier::new(Arc::default())
}

#[test]
fn class_browser_system_and_device_are_told() {
    let agents = agents();
    assert!(agents.len() >= 450);
    let mut classifier = classifier();
    let (mut right, mut missed) = ([0_usize; 4], Vec::new());
    for known in &agents {
        let facts = classifier.facts(&click(known.agent.as_bytes()));
        let agent = &facts.agent;
        let device = agent.device.name();
        let read = [facts.class.name(), &agent.browser, &agent.system, device];
        for (right, (read, expected)) in right.iter_mut().zip(read.iter().zip(known.fields)) {
            *right += usize::from(*read == expected);
        }
        if read != known.fields {
            println!("{read:?} instead of {:?}: {}", known.fields, known.agent);
            missed.push(known.agent);
        }
    }
    for (field, right) in ["class", "browser", "system", "device"].iter().zip(right) {
        println!("{field}: {right} of {}", agents.len());
        assert!(right * 100 >= agents.len() * 98, "{field}");
    }
    assert_eq!(missed, MISSES);
}

#[test]
fn headers_alone_and_fetching_ahead_are_nobodys_click() {
    let mut classifier = classifier();
    let person = click(agents()[0].agent.as_bytes());
    let program = click(b"curl/8.7.1");
    for (click, class) in [
        (person, ClickClass::Human),
        (program, ClickClass::Bot),
        (click(b""), ClickClass::Bot),
    ] {
        for (method, prefetch, class) in [
            (Method::Get, false, class),
            (Method::Other, false, class),
            (Method::Get, true, ClickClass::Prefetch),
            (Method::Head, false, ClickClass::Head),
            (Method::Head, true, ClickClass::Head),
        ] {
            let asked = ClickRecord {
                method,
                prefetch,
                ..click
            };
            assert_eq!(classifier.facts(&asked).class, class);
            assert_eq!(
                ClickRules::built_in().counts_as_human(&asked),
                class == ClickClass::Human
            );
        }
    }
}

#[test]
fn referrer_language_and_unknown_country_are_read_the_same_twice() {
    let mut classifier = classifier();
    let seen = ClickRecord {
        referrer: b"https://News.example.com/item?id=1",
        language: b"pt-BR,pt;q=0.9",
        ..click(b"Mozilla/5.0")
    };
    for _ in 0..2 {
        let facts = classifier.facts(&seen);
        assert_eq!(&*facts.referrer.host, "news.example.com");
        assert_eq!(facts.language.as_str(), "pt");
        assert_eq!(facts.place.country.as_str(), "unknown");
    }
    let facts = classifier.facts(&click(b"Mozilla/5.0"));
    assert_eq!(&*facts.referrer.host, "direct");
    assert_eq!(facts.language.as_str(), "unknown");
    let odd = ClickRecord {
        referrer: b"\xff\xfe",
        language: b"\x00\xff",
        ..click(b"\xff")
    };
    assert_eq!(&*classifier.facts(&odd).referrer.host, "unknown");
}

proptest! {
    #[test]
    fn no_agent_is_too_odd(agent in prop::collection::vec(any::<u8>(), 0..512)) {
        classifier().facts(&click(&agent));
    }

    #[test]
    fn no_mixture_of_agents_is_too_odd(
        parts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..200, 0_usize..60), 1..8),
    ) {
        let agents = agents();
        let mixed: Vec<u8> = parts
            .iter()
            .flat_map(|(index, start, length)| {
                index.get(&agents).agent.bytes().skip(*start).take(*length)
            })
            .collect();
        let facts = classifier().facts(&click(&mixed));
        prop_assert!(facts.agent.browser.len() <= 255 && facts.agent.system.len() <= 255);
    }
}
