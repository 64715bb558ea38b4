//! Two stores that are asked the same must answer the same: random histories against a reference.

use anyhow::{Context, Result};
use curt_core::ports::{ClickFilter, ClickQuery, ClickRanking, ClickWindow, HourRange};
use curt_core::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Day, Dimension, OwnerId, Rollup,
    SubjectDay, UnixMillis,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{DAY, Port, click, day, hour, link, visitors, walk};
use crate::conformance::same;
use crate::sample::{id, partition};

/// Runs a history of `steps` random calls, fixed by the seed, on both stores and compares every answer.
///
/// # Panics
/// At the first difference, with the seed and the step.
pub async fn agreement(seed: u64, steps: usize, reference: Port, other: Port) {
    let mut history = History {
        random: StdRng::seed_from_u64(seed),
        reference,
        other,
    };
    for step in 0..steps {
        if let Err(error) = history.step().await {
            panic!("ClickStore: seed {seed}, step {step}: {error:#}");
        }
    }
}

struct History {
    random: StdRng,
    reference: Port,
    other: Port,
}

/// Asks both stores and compares the answers.
macro_rules! both {
    ($history:ident, $what:expr, |$store:ident| $call:expr) => {{
        let ask = async |$store: &Port| $call.await.context("the call failed");
        let want = ask(&$history.reference).await?;
        let got = ask(&$history.other).await?;
        same(&$what, got, want)?;
    }};
}

impl History {
    async fn step(&mut self) -> Result<()> {
        match self.random.random_range(0..12) {
            0..4 => self.apply().await,
            4..6 => self.read_rollups().await,
            6 => self.read_visitors().await,
            7..9 => self.read_clicks().await,
            9 => self.salts().await,
            _ => self.purge().await,
        }
    }

    async fn apply(&mut self) -> Result<()> {
        let partition = partition(self.random.random_range(0..2));
        let at = self.reference.offset(partition).await?;
        let wrong = u64::from(self.random.random_bool(0.2));
        let flush = ClickWindow {
            partition,
            from: at + wrong,
            to: at + self.random.random_range(1..5),
            days: (0..self.number(5))
                .map(|_| self.any_day())
                .collect::<Vec<_>>()
                .into(),
            blocks: Vec::new(),
        }
        .with_clicks(
            &(0..self.number(9))
                .map(|_| self.any_click())
                .collect::<Vec<_>>(),
        );
        both!(self, format!("{flush:?}"), |store| store
            .apply(flush.clone()));
        let what = format!("position of {partition:?}");
        both!(self, what.clone(), |store| store.offset(partition));
        both!(self, format!("merge after {what}"), |store| store.compact());
        Ok(())
    }

    async fn read_rollups(&mut self) -> Result<()> {
        let subject = self.any_subject();
        let dimension = self.one_of(&Dimension::ALL);
        let range = HourRange {
            from: self.any_time(),
            before: self.any_time(),
        };
        let range = self.one_of(&[range, HourRange::ALL]);
        let limit = self.number(5);
        let what = format!("{subject:?} by {dimension:?} in {range:?}");
        both!(self, what, |store| store.series(&subject, dimension, range));
        both!(self, format!("top {limit}, {what}"), |store| store
            .top(&subject, dimension, range, limit));
        let several = Dimension::ALL.map(|dimension| (dimension, limit));
        let what = format!("overview of {subject:?} in {range:?}, {limit} each");
        both!(self, what, |store| store
            .overview(&subject, &several, range));
        Ok(())
    }

    async fn read_visitors(&mut self) -> Result<()> {
        let subject = self.any_subject();
        let (from, before) = (self.any_day_number(), self.any_day_number());
        let what = format!("visitors of {subject:?} in [{from:?}, {before:?})");
        both!(self, what, |store| store.visitors(&subject, from, before));
        Ok(())
    }

    async fn read_clicks(&mut self) -> Result<()> {
        let mut query = ClickQuery {
            subject: self.any_subject(),
            from: self.any_time(),
            before: self.any_time(),
            filter: ClickFilter::default(),
            cursor: None,
            limit: 1 + self.number(20),
        };
        if self.random.random_bool(0.3) {
            query.filter.class = Some(self.one_of(&ClickClass::ALL));
        }
        if self.random.random_bool(0.3) {
            let dimension = self.one_of(&Dimension::ALL);
            query.filter.values = vec![(dimension, self.any_value())];
        }
        both!(self, format!("{query:?}"), |store| walk(store, &query));
        let ranking = ClickRanking {
            subject: query.subject,
            from: query.from,
            before: query.before,
            filter: query.filter,
            dimension: self.one_of(&Dimension::ALL),
            limit: self.number(9),
        };
        both!(self, format!("{ranking:?}"), |store| store
            .rank_clicks(&ranking));
        Ok(())
    }

    async fn salts(&mut self) -> Result<()> {
        let day = self.any_day_number();
        if self.random.random_bool(0.3) {
            both!(self, format!("forget {day:?}"), |store| store
                .forget_salts(day));
        }
        let fresh = [self.random.random(); 32];
        both!(self, format!("salt of {day:?}"), |store| store
            .salt(day, fresh));
        Ok(())
    }

    async fn purge(&mut self) -> Result<()> {
        let before = self.any_day_number().minus(2);
        // Which of a full batch go first is left open, so that all must go.
        let what = format!("purge clicks before {before:?}");
        both!(self, what, |store| store
            .purge_clicks(before.start(), usize::MAX));
        let what = format!("purge days before {before:?}");
        // How many is told roughly, so that it is asked until none is left.
        for _ in 0..2 {
            let purge = async |store: &Port| {
                let purged = store.purge_rollups(before, usize::MAX).await;
                purged.map(|days| days > 0)
            };
            both!(self, what, |store| purge(store));
        }
        Ok(())
    }

    fn number(&mut self, below: usize) -> usize {
        self.random.random_range(0..below)
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.random.random_range(0..all.len())].clone()
    }

    fn any_day_number(&mut self) -> Day {
        day(DAY + self.random.random_range(0..4))
    }

    fn any_time(&mut self) -> UnixMillis {
        let at = hour(self.random.random_range(-2..98));
        UnixMillis(at.0 + self.random.random_range(-2..2) * 900_000)
    }

    fn any_subject(&mut self) -> ClickSubject {
        let owner = OwnerId(self.random.random_range(1..3));
        let key = self.one_of(&["a", "b", "A"]);
        let tag = self.one_of(&["red", "Blue"]);
        self.one_of(&[
            ClickSubject::Everything,
            ClickSubject::Orphans,
            ClickSubject::Owner(owner),
            ClickSubject::tag(owner, tag),
            link(key),
            link(key),
        ])
    }

    fn any_value(&mut self) -> Box<str> {
        self.one_of(&["DE", "FR", "other", "", "a\u{e9}"]).into()
    }

    fn any_day(&mut self) -> SubjectDay {
        let day = self.any_day_number();
        let rollups = (0..self.number(12)).map(|_| Rollup {
            hour: self.any_time(),
            dimension: self.one_of(&Dimension::ALL),
            value: self.any_value().into(),
            count: self.one_of(&[0, 1, 2, 300, u64::MAX / 2]),
        });
        let rollups = rollups.collect();
        let first = self.random.random_range(0..40);
        let count = self.one_of(&[0, 3, 2_000]);
        SubjectDay {
            subject: self.any_subject(),
            day,
            rollups,
            visitors: visitors(first..first + count),
        }
    }

    fn any_click(&mut self) -> Click {
        let key = self.one_of(&["a", "b", "A"]);
        let outcome = self.one_of(&[
            ClickOutcome::Link(id(key), 1),
            ClickOutcome::Link(id(key), 1),
            ClickOutcome::Absent("nope".into()),
            ClickOutcome::BaseUrl,
        ]);
        let owner = OwnerId(self.random.random_range(1..3));
        let tags: &[&str] = self.one_of(&[&[] as &[_], &["red"], &["RED", "blue"]]);
        let mut details = ClickDetails::default();
        details.set(self.one_of(&Dimension::DETAILS), self.any_value());
        Click {
            at: self.any_time(),
            owner: matches!(outcome, ClickOutcome::Link(..)).then_some(owner),
            tags: tags.iter().map(|tag| (*tag).into()).collect(),
            outcome,
            class: self.one_of(&ClickClass::ALL),
            country: self.any_value(),
            browser: self.any_value(),
            details,
            ..click(key, 0)
        }
    }
}
