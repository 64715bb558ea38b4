//! Reports on clicks.

mod details;
mod erase;
mod feed;
mod link_clicks;
mod reports;
mod single_clicks;

use curt_core::ports::{ClickStore, ClickWindow};
use curt_core::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Day, Dimension, DomainId, Key,
    LinkId, OwnerId, Rollup, Sketch, SubjectDay, UnixMillis,
};
use curt_testkit::sample::partition;
use http::{Method, Request};

use crate::harness::{ADA, Answer, World};

pub(crate) const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

pub(crate) fn id(key: &str) -> LinkId {
    LinkId::new(DomainId::DEFAULT, Key::parse(key).unwrap())
}

pub(crate) fn link(key: &str) -> ClickSubject {
    ClickSubject::Link(id(key), 1)
}

/// Counts clicks of a subject in one hour.
pub(crate) async fn count(
    world: &World,
    subject: &ClickSubject,
    at: UnixMillis,
    dimension: Dimension,
    value: &str,
    count: u64,
) {
    let mut visitors = Sketch::new();
    if (dimension, value) == (Dimension::Class, "human") {
        visitors.insert(0x0123_4567_89ab_cdef);
    }
    let day = SubjectDay {
        subject: subject.clone(),
        day: Day::of(at),
        rollups: vec![Rollup {
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
    count(world, subject, at, Dimension::Class, "human", number).await;
}

pub(crate) async fn apply(world: &World, days: Vec<SubjectDay>, clicks: Vec<Click>) {
    let from = world.clicks.offset(partition(0)).await.unwrap();
    let flush = ClickWindow {
        partition: partition(0),
        from,
        to: from + 1,
        days: days.into(),
        blocks: Vec::new(),
    }
    .with_clicks(&clicks);
    assert!(world.clicks.apply(flush).await.unwrap());
}

pub(crate) fn click(at: UnixMillis, outcome: ClickOutcome, owner: Option<OwnerId>) -> Click {
    Click {
        at,
        outcome,
        owner,
        tags: Vec::new(),
        class: ClickClass::Human,
        country: "DE".into(),
        browser: "Firefox".into(),
        system: "Linux".into(),
        device: "desktop".into(),
        referrer: "news.example".into(),
        language: "de".into(),
        details: ClickDetails::default(),
        address: None,
    }
}

pub(crate) fn of_ada(at: UnixMillis, key: &str) -> Click {
    click(at, ClickOutcome::Link(id(key), 1), Some(ADA))
}

async fn get(world: &World, path: &str) -> Answer {
    world.call(Method::GET, path, None).await
}

async fn get_as(world: &World, key: &str, path: &str) -> Answer {
    let request = Request::get(path).header("x-api-key", key);
    world.send(request.body(Default::default()).unwrap()).await
}
