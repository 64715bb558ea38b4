//! What the tests share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ports::{ClickDatabase, ClickWindow, HourRange, StreamId, StreamPartition};
use curt_core::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Day, Dimension, Rollup, Sketch,
    SubjectDay, UnixMillis,
};
use curt_postgres::{Postgres, PostgresSettings};
use curt_testkit::sample::{NOW, OWNER, id};

/// How long a store may be away, or something take on a busy machine, before a test gives up.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

pub(crate) type Clicks = Arc<dyn ClickDatabase>;

pub(crate) fn open(url: &str) -> Clicks {
    let settings = PostgresSettings {
        // The machine may be busy with other tests.
        connect_timeout: Duration::from_secs(30),
        ..PostgresSettings::default().with_timeout(Duration::from_secs(30))
    };
    Postgres::open(url, &settings).unwrap().clicks()
}

/// The only partition of a server's stream.
pub(crate) fn stream(server: u64) -> StreamPartition {
    StreamPartition {
        stream: StreamId(server),
        number: 0,
    }
}

pub(crate) fn link(key: &str) -> ClickSubject {
    ClickSubject::Link(id(key), 1)
}

/// One click of a human, today.
pub(crate) fn counted(subject: ClickSubject) -> SubjectDay {
    SubjectDay {
        subject,
        day: Day::of(NOW),
        rollups: vec![Rollup {
            hour: NOW.hour(),
            dimension: Dimension::Class,
            value: "human".into(),
            count: 1,
        }],
        visitors: Sketch::new(),
    }
}

pub(crate) fn click(key: &str, at: UnixMillis) -> Click {
    Click {
        at,
        outcome: ClickOutcome::Link(id(key), 1),
        owner: Some(OWNER),
        tags: Vec::new(),
        class: ClickClass::Human,
        country: "DE".into(),
        browser: "Firefox".into(),
        system: "Linux".into(),
        device: "desktop".into(),
        referrer: "direct".into(),
        language: "de".into(),
        details: ClickDetails::default(),
        address: None,
    }
}

/// One click of the link "a": its days and itself.
pub(crate) fn one_click(server: u64, from: u64) -> ClickWindow {
    ClickWindow {
        partition: stream(server),
        from,
        to: from + 1,
        days: vec![counted(link("a")), counted(ClickSubject::Everything)].into(),
        blocks: Vec::new(),
    }
    .with_clicks(&[click("a", NOW)])
}

pub(crate) async fn total(clicks: &Clicks, subject: &ClickSubject) -> u64 {
    let top = clicks.top(subject, Dimension::Class, HourRange::ALL, 9);
    top.await.unwrap().total()
}

/// Repeats a flush until it is there, as the consumer of a stream does.
pub(crate) async fn apply_surely(clicks: &Clicks, flush: ClickWindow) {
    let started = Instant::now();
    loop {
        let applied = match clicks.apply(flush.clone()).await {
            Ok(true) => return,
            Ok(false) => clicks.offset(flush.partition).await,
            Err(error) => Err(error),
        };
        match applied {
            Ok(position) => return assert_eq!(position, flush.to, "C-1"),
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
        assert!(started.elapsed() < WAIT_MAX, "still away");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
