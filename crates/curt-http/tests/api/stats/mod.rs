//! Reports on visits.

mod feed;
mod reports;
mod single_visits;

use curt_core::ports::{ClickFlush, ClickStore};
use curt_core::{
    ClickSubject, ClickSum, Day, Dimension, DomainId, Key, LinkId, OwnerId, Sketch, SubjectDay,
    UnixMillis, VisitKind, VisitRow, Visited,
};
use curt_testkit::sample::partition;
use http::{Method, Request};

use crate::harness::{ADA, Answer, World};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

pub(crate) fn id(key: &str) -> LinkId {
    LinkId::new(DomainId::DEFAULT, Key::parse(key).unwrap())
}

fn link(key: &str) -> ClickSubject {
    ClickSubject::Link(id(key), 1)
}

/// Counts visits of a subject in one hour.
async fn count(
    world: &World,
    subject: &ClickSubject,
    at: UnixMillis,
    dimension: Dimension,
    value: &str,
    count: u64,
) {
    let mut visitors = Sketch::new();
    if (dimension, value) == (Dimension::Kind, "human") {
        visitors.insert(0x0123_4567_89ab_cdef);
    }
    let day = SubjectDay {
        subject: subject.clone(),
        day: Day::of(at),
        sums: vec![ClickSum {
            hour: at.hour(),
            dimension,
            value: value.into(),
            count,
        }],
        visitors,
    };
    apply(world, vec![day], Vec::new()).await;
}

async fn humans(world: &World, subject: &ClickSubject, at: UnixMillis, number: u64) {
    count(world, subject, at, Dimension::Kind, "human", number).await;
}

pub(crate) async fn apply(world: &World, days: Vec<SubjectDay>, visits: Vec<VisitRow>) {
    let from = world.clicks.position(partition(0)).await.unwrap();
    let flush = ClickFlush {
        partition: partition(0),
        from,
        to: from + 1,
        days,
        visits,
    };
    assert!(world.clicks.apply(flush).await.unwrap());
}

pub(crate) fn visit(at: UnixMillis, visited: Visited, owner: Option<OwnerId>) -> VisitRow {
    VisitRow {
        at,
        visited,
        owner,
        tags: Vec::new(),
        kind: VisitKind::Human,
        country: "DE".into(),
        browser: "Firefox".into(),
        system: "Linux".into(),
        device: "desktop".into(),
        referrer: "news.example".into(),
        language: "de".into(),
        address: None,
    }
}

fn of_ada(at: UnixMillis, key: &str) -> VisitRow {
    visit(at, Visited::Link(id(key), 1), Some(ADA))
}

async fn get(world: &World, path: &str) -> Answer {
    world.call(Method::GET, path, None).await
}

async fn get_as(world: &World, key: &str, path: &str) -> Answer {
    let request = Request::get(path).header("x-api-key", key);
    world.send(request.body(Default::default()).unwrap()).await
}
