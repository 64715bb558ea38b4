//! Clicks over time, as columns: people below, everything else above.

use curt_clicks::report::{Point, ReportPeriod, Summary};

use super::grouped;

/// Units of the picture, which is stretched to the width of the page.
const COLUMN: u32 = 10;
const BAR: u32 = 8;
const HEIGHT: u64 = 1_000;

pub(in crate::pages) struct SeriesChart {
    pub(in crate::pages) columns: Vec<ChartColumn>,
    pub(in crate::pages) width: u32,
    /// What the highest column may have, and half of it.
    pub(in crate::pages) top: String,
    pub(in crate::pages) half: String,
    /// Labels of the first, the middle and the last column.
    pub(in crate::pages) ticks: Vec<String>,
    /// What the picture shows, in one sentence.
    pub(in crate::pages) sentence: String,
    /// What one column is.
    pub(in crate::pages) unit: &'static str,
    pub(in crate::pages) height: u64,
    pub(in crate::pages) column: u32,
    pub(in crate::pages) bar: u32,
}

pub(in crate::pages) struct ChartColumn {
    pub(in crate::pages) label: String,
    pub(in crate::pages) humans: String,
    pub(in crate::pages) others: String,
    pub(in crate::pages) x: u32,
    pub(in crate::pages) humans_y: u64,
    pub(in crate::pages) humans_height: u64,
    pub(in crate::pages) others_y: u64,
    pub(in crate::pages) others_height: u64,
}

impl SeriesChart {
    pub(in crate::pages) fn new(summary: &Summary, bucket: ReportPeriod) -> Self {
        let points = &summary.points;
        let most = points.iter().map(|point| point.counts.total()).max();
        let scale = round_up(most.unwrap_or(0).max(2));
        let columns: Vec<_> = (0_u32..)
            .zip(points)
            .map(|(at, point)| column(at, point, scale, bucket))
            .collect();
        let ticks = ticks(&columns);
        let unit = bucket.name();
        let busiest = points.iter().max_by_key(|point| point.counts.human);
        let busiest = busiest.filter(|point| point.counts.human > 0);
        let busiest_count = busiest.map_or_else(String::new, |point| {
            let (when, count) = (
                short_label(&point.label, bucket),
                grouped(point.counts.human),
            );
            format!(" Most in one {unit}: {count}, {when}.")
        });
        let total = grouped(summary.totals.human);
        Self {
            width: u32::try_from(columns.len()).unwrap_or(0).max(1) * COLUMN,
            columns,
            top: grouped(scale),
            half: grouped(scale / 2),
            ticks,
            sentence: format!("{total} clicks of people in this time.{busiest_count}"),
            unit,
            height: HEIGHT,
            column: COLUMN,
            bar: BAR,
        }
    }
}

fn column(at: u32, point: &Point, scale: u64, bucket: ReportPeriod) -> ChartColumn {
    let humans = point.counts.human;
    let others = point.counts.total().saturating_sub(humans);
    let height = |count: u64| match count {
        0 => 0,
        // One click in a million is still to be seen.
        count => (share(count, scale)).max(HEIGHT / 100),
    };
    let (humans_height, others_height) = (height(humans), height(others));
    let humans_y = HEIGHT.saturating_sub(humans_height);
    ChartColumn {
        label: short_label(&point.label, bucket),
        humans: grouped(humans),
        others: grouped(others),
        x: at * COLUMN,
        humans_y,
        humans_height,
        others_y: humans_y.saturating_sub(others_height),
        others_height,
    }
}

fn share(count: u64, scale: u64) -> u64 {
    let share = u128::from(count) * u128::from(HEIGHT) / u128::from(scale);
    u64::try_from(share).unwrap_or(HEIGHT)
}

/// The next number of the form 2, 4, 10, 20, 40, 100 …, whose half is whole.
fn round_up(number: u64) -> u64 {
    let mut ten: u64 = 1;
    loop {
        for step in [2, 4, 10] {
            let round = ten.saturating_mul(step);
            if round >= number {
                return round;
            }
        }
        ten = ten.saturating_mul(10);
    }
}

fn ticks(columns: &[ChartColumn]) -> Vec<String> {
    let last = columns.len().saturating_sub(1);
    let mut places = vec![0, last / 2, last];
    places.dedup();
    let label = |at: usize| columns.get(at).map(|column| column.label.clone());
    places.into_iter().filter_map(label).collect()
}

/// `2026-11-15T14:00+01:00` as `11-15 14:00`: the page says which zone it is in.
fn short_label(label: &str, bucket: ReportPeriod) -> String {
    match bucket {
        ReportPeriod::Hour => label.get(5..16).unwrap_or(label).replace('T', " "),
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use curt_clicks::report::Counts;
    use curt_core::UnixMillis;

    use super::*;

    fn point(label: &str, human: u64, bot: u64) -> Point {
        Point {
            start: UnixMillis(0),
            label: label.into(),
            counts: Counts {
                human,
                bot,
                ..Counts::default()
            },
            visitors: None,
        }
    }

    #[test]
    fn columns_stay_inside_the_picture() {
        let summary = Summary {
            totals: Counts::default(),
            visitors: 0,
            points: vec![
                point("2026-01-01", 0, 0),
                point("2026-01-02", 1, 1_000_000),
                point("2026-01-03", u64::MAX / 2, 3),
            ],
        };
        let chart = SeriesChart::new(&summary, ReportPeriod::Day);
        assert_eq!(chart.ticks, ["2026-01-01", "2026-01-02", "2026-01-03"]);
        for column in &chart.columns {
            assert!(column.humans_y + column.humans_height <= HEIGHT);
            assert!(column.others_y + column.others_height <= column.humans_y);
        }
        assert_eq!(chart.columns[0].humans_height, 0);
        assert!(chart.columns[1].humans_height > 0, "one click is seen");
    }

    #[test]
    fn scales_are_round() {
        for (most, round) in [(2, 2), (3, 4), (5, 10), (11, 20), (88, 100), (401, 1_000)] {
            assert_eq!(round_up(most), round);
        }
        assert_eq!(round_up(u64::MAX), u64::MAX);
    }
}
