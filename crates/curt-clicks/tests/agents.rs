//! Who is a person and who is not (E10), over a list of agents of every sort.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use curt_clicks::classify::{self, Classifier, Countries};
use curt_clicks::record::{ClickRecord, Method, Outcome};
use curt_core::{Attribution, ClickClass, DomainId, UnixMillis};
use proptest::prelude::*;

const HUMANS: &str = include_str!("agents/humans.txt");
const BOTS: &str = include_str!("agents/bots.txt");

struct Human {
    browser: &'static str,
    system: &'static str,
    device: &'static str,
    agent: &'static str,
}

fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

fn humans() -> Vec<Human> {
    let human = |line: &'static str| {
        let columns: Vec<&str> = line.splitn(4, '\t').collect();
        Human {
            browser: columns[0],
            system: columns[1],
            device: columns[2],
            agent: columns[3],
        }
    };
    lines(HUMANS).map(human).collect()
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
        attribution: Attribution::default(),
    }
}

fn classifier() -> Classifier {
    Classifier::new(Arc::new(Countries::none()))
}

#[test]
fn people_and_programs_are_told_apart() {
    let (humans, bots) = (humans(), lines(BOTS).collect::<Vec<_>>());
    assert!(humans.len() >= 100 && bots.len() >= 100);
    let is_human = |agent: &str| classify::is_human(&click(agent.as_bytes()));
    let missed: Vec<_> = humans
        .iter()
        .map(|human| human.agent)
        .filter(|agent| !is_human(agent))
        .collect();
    let mistaken: Vec<_> = bots.into_iter().filter(|agent| is_human(agent)).collect();
    let found = humans.len() - missed.len();
    let recall = found as f64 / humans.len() as f64;
    let precision = found as f64 / (found + mistaken.len()) as f64;
    println!("recall {recall:.3}, precision {precision:.3}");
    assert!(recall >= 0.95, "taken for programs: {missed:#?}");
    assert!(precision >= 0.99, "taken for people: {mistaken:#?}");
}

#[test]
fn browser_system_and_device_are_named() {
    let mut classifier = classifier();
    let mut wrong = Vec::new();
    let humans = humans();
    for human in &humans {
        let facts = classifier.facts(&click(human.agent.as_bytes()));
        let agent = &facts.agent;
        let read = (&*agent.browser, &*agent.system, agent.device.name());
        if read != (human.browser, human.system, human.device) {
            wrong.push(format!("{read:?}: {}", human.agent));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn headers_alone_and_fetching_ahead_are_nobodys_click() {
    let mut classifier = classifier();
    let person = click(humans()[0].agent.as_bytes());
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
            assert_eq!(classify::is_human(&asked), class == ClickClass::Human);
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
        assert_eq!(&*facts.referrer, "news.example.com");
        assert_eq!(facts.language.as_str(), "pt");
        assert_eq!(facts.country.as_str(), "unknown");
    }
    let facts = classifier.facts(&click(b"Mozilla/5.0"));
    assert_eq!(&*facts.referrer, "direct");
    assert_eq!(facts.language.as_str(), "unknown");
    let odd = ClickRecord {
        referrer: b"\xff\xfe",
        language: b"\x00\xff",
        ..click(b"\xff")
    };
    assert_eq!(&*classifier.facts(&odd).referrer, "unknown");
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
        let agents: Vec<&str> = lines(BOTS).chain(humans().iter().map(|human| human.agent)).collect();
        let mixed: Vec<u8> = parts
            .iter()
            .flat_map(|(index, start, length)| {
                index.get(&agents).bytes().skip(*start).take(*length)
            })
            .collect();
        let facts = classifier().facts(&click(&mixed));
        prop_assert!(facts.agent.browser.len() <= 255 && facts.agent.system.len() <= 255);
    }
}
