//! Hours counted into points.

use std::ops::AddAssign;
use std::time::Duration;

use curt_core::ports::Top;
use curt_core::{ClickClass, Day, Rollup, UnixMillis};

const HALF_A_DAY: Duration = Duration::from_secs(12 * 3_600);

/// Clicks of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub human: u64,
    pub bot: u64,
    pub prefetch: u64,
    pub head: u64,
}

impl Counts {
    #[must_use]
    pub fn total(&self) -> u64 {
        let machines = self.bot.saturating_add(self.prefetch);
        self.human
            .saturating_add(machines)
            .saturating_add(self.head)
    }

    #[must_use]
    pub fn of(&self, class: ClickClass) -> u64 {
        match class {
            ClickClass::Human => self.human,
            ClickClass::Bot => self.bot,
            ClickClass::Prefetch => self.prefetch,
            ClickClass::Head => self.head,
        }
    }

    /// What has come since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            human: self.human.saturating_sub(earlier.human),
            bot: self.bot.saturating_sub(earlier.bot),
            prefetch: self.prefetch.saturating_sub(earlier.prefetch),
            head: self.head.saturating_sub(earlier.head),
        }
    }

    pub(super) fn sum(counts: impl Iterator<Item = Self>) -> Self {
        counts.fold(Self::default(), |mut sum, counts| {
            sum += counts;
            sum
        })
    }

    pub(super) fn of_kinds(top: &Top) -> Self {
        let mut counts = Self::default();
        for (value, count) in &top.values {
            counts.add(value, *count);
        }
        counts
    }

    /// A value that is no class is no click either: the store counts nothing else in this dimension.
    fn add(&mut self, value: &str, count: u64) {
        let Some(class) = ClickClass::named(value) else {
            return;
        };
        let sum = match class {
            ClickClass::Human => &mut self.human,
            ClickClass::Bot => &mut self.bot,
            ClickClass::Prefetch => &mut self.prefetch,
            ClickClass::Head => &mut self.head,
        };
        *sum = sum.saturating_add(count);
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        for class in ClickClass::ALL {
            self.add(class.name(), other.of(class));
        }
    }
}

/// One bucket of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its first hour. The first bucket may begin before the range, but nothing of that is counted.
    pub start: UnixMillis,
    /// As its calendar writes it: `2026-11-15`, `2026-W46`, `2026-11`, `2026-11-15T14:00+01:00`.
    pub label: Box<str>,
    pub counts: Counts,
    /// Of the UTC days whose noon it holds; `None` for an hour, of which no visitors are known.
    pub visitors: Option<u64>,
}

impl Point {
    pub(super) fn empty(start: UnixMillis, label: Box<str>) -> Self {
        Self {
            start,
            label,
            counts: Counts::default(),
            visitors: None,
        }
    }
}

pub(super) fn count(points: &mut [Point], rollups: &[Rollup]) {
    for sum in rollups {
        if let Some(point) = holding(points, sum.hour) {
            point.counts.add(&sum.value, sum.count);
        }
    }
}

/// A day's visitors cannot be divided: they all go to the point that has most of the day. Days at the ends of the range
/// whose noon lies outside go to the first and the last point.
pub(super) fn place_visitors(points: &mut [Point], visitors: &[(Day, u64)]) {
    for point in &mut *points {
        point.visitors = Some(0);
    }
    for (day, count) in visitors {
        let noon = day.start().plus(HALF_A_DAY);
        let first = points.first().map_or(noon, |point| point.start);
        if let Some(point) = holding(points, noon.max(first)) {
            let sum = point.visitors.get_or_insert_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

fn holding(points: &mut [Point], at: UnixMillis) -> Option<&mut Point> {
    let after = points.partition_point(|point| point.start <= at);
    points.get_mut(after.checked_sub(1)?)
}
