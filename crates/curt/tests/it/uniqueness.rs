//! K-1: a key is never on two links, whoever asks for it and however many at once.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::Instant;

use curt_testkit::stop::Rendezvous;
use serde_json::json;

use crate::api::{Api, bulk_results};
use crate::length::length;
use crate::site::Site;

const CLIENTS: usize = 64;
/// Of the clients, so many create links one by one; the others in bulk.
const SINGLE_CLIENTS: usize = 48;
const RACERS: usize = 16;

#[test]
fn generated_keys_of_64_clients_are_distinct_k1() {
    let links = length(20_000, 1_000_000);
    // Single creates are slower by far, so most links come in bulk.
    let singles = links / 10 / SINGLE_CLIENTS;
    let in_bulk = links - singles * SINGLE_CLIENTS;
    let bulk_clients = CLIENTS - SINGLE_CLIENTS;
    let site = Site::start(&[&format!("server.bulk_per_client={bulk_clients}")]);
    let began = Instant::now();
    let made: Vec<(String, String)> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let mut api = site.api();
                scope.spawn(move || match client.checked_sub(SINGLE_CLIENTS) {
                    None => create_singly(&mut api, client, singles),
                    Some(place) => {
                        let share = share_of(in_bulk, CLIENTS - SINGLE_CLIENTS, place);
                        create_in_bulk(&mut api, client, share)
                    }
                })
            })
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(made.len(), links);
    let by_key: HashMap<&str, &str> = made
        .iter()
        .map(|(key, target)| (key.as_str(), target.as_str()))
        .collect();
    assert_eq!(by_key.len(), links, "K-1: some key was given out twice");
    let mut api = site.api();
    for (key, target) in made.iter().step_by(length(7, 101)) {
        let answer = api.follow(key).unwrap();
        assert_eq!(
            (answer.status, answer.header("location")),
            (302, Some(target.as_str())),
            "K-1: /{key} leads to another link's target"
        );
    }
    println!(
        "uniqueness: {links} links by {CLIENTS} clients in {seconds:.1} s ({:.0}/s), 0 duplicates",
        links as f64 / seconds
    );
}

/// The share of the client at `place` when `whole` is divided among `parts`, to the last one.
fn share_of(whole: usize, parts: usize, place: usize) -> usize {
    whole / parts + usize::from(place < whole % parts)
}

fn create_singly(api: &mut Api, client: usize, links: usize) -> Vec<(String, String)> {
    (0..links)
        .map(|number| {
            let target = format!("https://example.com/single/{client}/{number}");
            let answer = api.create(&target).unwrap();
            assert_eq!(answer.status, 201, "{answer:?}");
            let key = answer.json()["key"].as_str().unwrap().to_owned();
            (key, target)
        })
        .collect()
}

fn create_in_bulk(api: &mut Api, client: usize, links: usize) -> Vec<(String, String)> {
    let mut made = Vec::new();
    let targets: Vec<String> = (0..links)
        .map(|number| format!("https://example.com/bulk/{client}/{number}"))
        .collect();
    for chunk in targets.chunks(250) {
        let keys = bulk_results(&api.bulk(chunk).unwrap());
        made.extend(keys.into_iter().zip(chunk.iter().cloned()));
    }
    made
}

#[test]
fn an_alias_raced_by_16_clients_has_exactly_one_winner_k1() {
    let aliases = length(300, 10_000);
    let site = Site::start(&[]);
    let start = Rendezvous::of(RACERS);
    let began = Instant::now();
    // For each racer, the aliases that it won.
    let won: Vec<HashSet<usize>> = thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (mut api, start) = (site.api(), &start);
                scope.spawn(move || {
                    (0..aliases)
                        .filter(|alias| {
                            start.wait();
                            race(&mut api, *alias, racer)
                        })
                        .collect()
                })
            })
            .collect();
        racers
            .into_iter()
            .map(|racer| racer.join().unwrap())
            .collect()
    });
    let mut api = site.api();
    for alias in 0..aliases {
        let winners: Vec<usize> = (0..RACERS)
            .filter(|racer| won[*racer].contains(&alias))
            .collect();
        let &[winner] = winners.as_slice() else {
            panic!("K-1: the alias race-{alias} was won by {winners:?}");
        };
        let answer = api.follow(&format!("race-{alias}")).unwrap();
        assert_eq!(
            (answer.status, answer.header("location")),
            (302, Some(target_of(alias, winner).as_str())),
            "race-{alias} leads elsewhere than its winner asked for"
        );
    }
    println!(
        "uniqueness: {aliases} aliases raced by {RACERS} clients each in {:.1} s, one winner each",
        began.elapsed().as_secs_f64()
    );
}

fn target_of(alias: usize, racer: usize) -> String {
    format!("https://example.com/alias/{alias}/by/{racer}")
}

/// Asks for the alias by one of the three ways to create a link. Returns whether this client got it; every other
/// answer than "yours" and "taken" fails the test.
fn race(api: &mut Api, alias: usize, racer: usize) -> bool {
    let name = format!("race-{alias}");
    let target = target_of(alias, racer);
    let link = json!({ "target": target, "alias": name });
    let (status, code) = match racer % 4 {
        0 | 1 => {
            let answer = api.post("/api/v1/links", &link).unwrap();
            (answer.status, answer.json()["code"].clone())
        }
        2 => {
            let answer = api
                .post("/api/v1/links/bulk", &json!({ "links": [link] }))
                .unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            let result = answer.json()["results"][0].clone();
            let status = u16::try_from(result["status"].as_u64().unwrap()).unwrap();
            (status, result["problem"]["code"].clone())
        }
        _ => {
            let body = json!({ "original_url": target, "custom_alias": name });
            let answer = api.post("/api/v1/createURL", &body).unwrap();
            match answer.status {
                200 => (201, json!(null)),
                status => (status, answer.json()["code"].clone()),
            }
        }
    };
    match (status, code.as_str()) {
        (201, None) => true,
        (409, Some("alias-taken")) => false,
        other => panic!("{name}: {other:?}"),
    }
}
