//! Clauses of the ports of clicks, a file for each part, and the tests that run them: one per clause.

mod agreement;
pub mod apply;
pub mod counters;
pub mod dead_letters;
pub mod durable;
pub mod erase;
pub mod forget;
pub mod rollups;
pub mod single_clicks;
pub mod sink;
pub mod source;
pub mod visitors;

pub use agreement::agreement;

use std::sync::Arc;

use anyhow::Result;
use curt_core::ports::{ClickDatabase, ClickFilter, ClickQuery, ClickWindow, HourRange};
use curt_core::{
    Click, ClickClass, ClickDetails, ClickOutcome, ClickSubject, Day, Dimension, Rollup, Sketch,
    SubjectDay, UnixMillis,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::sample::{OWNER, id, partition};

type Port = Arc<dyn ClickDatabase>;

/// The tests of the ports that a clicks database serves. `$open` gives a fresh one, with what keeps it alive.
#[macro_export]
macro_rules! click_database_tests {
    ($open:expr) => {
        mod click_store {
            use super::*;
            $crate::clause_tests!(
                $open,
                clicks::apply,
                an_empty_store_knows_nothing,
                a_flush_is_applied_once_c1,
                a_refused_flush_changes_nothing_c1,
                an_empty_flush_moves_the_offset,
                partitions_add_up,
                streams_are_apart,
                one_racer_applies_c1,
                racing_partitions_all_count_c1
            );
            $crate::clause_tests!(
                $open,
                clicks::forget,
                a_day_keeps_its_first_salt,
                racers_get_one_salt,
                forgotten_salts_are_gone,
                old_clicks_go_oldest_first,
                the_oldest_clicks_go_beyond_a_size,
                what_is_purged_takes_no_room,
                old_days_go_and_others_stay
            );
            $crate::clause_tests!(
                $open,
                clicks::erase,
                an_absent_link_has_nothing_to_erase,
                the_clicks_of_one_link_go_and_others_stay,
                the_days_of_one_link_go_and_totals_stay,
                an_erasure_goes_on_where_it_was_bounded,
                a_page_goes_on_after_an_erasure,
                an_erasure_races_with_flushes_and_merges
            );
        }
        mod click_reports {
            use super::*;
            $crate::clause_tests!(
                $open,
                clicks::rollups,
                rollups_come_by_hour_and_then_value,
                a_range_has_its_start_and_not_its_end,
                a_range_is_of_whole_hours,
                subjects_are_apart,
                dimensions_are_apart,
                values_are_kept_verbatim,
                values_beyond_the_bound_are_other,
                an_hour_of_another_day_is_the_nearest,
                nothing_is_not_counted,
                counts_are_as_large_as_they_get,
                the_first_and_last_day_are_days,
                the_top_is_ranked,
                the_top_is_of_the_range
            );
            $crate::clause_tests!(
                $open,
                clicks::visitors,
                a_visitor_of_two_flushes_is_one,
                days_and_links_have_their_own_visitors,
                many_visitors_are_estimated
            );
            $crate::clause_tests!(
                $open,
                clicks::single_clicks,
                the_newest_click_comes_first,
                clicks_of_one_instant_come_last_first,
                pages_leave_nothing_out,
                a_late_click_does_not_shift_a_page,
                every_subject_has_its_clicks,
                filters_take_what_has_every_value,
                a_range_of_clicks_has_its_start_and_not_its_end,
                clicks_are_kept_verbatim,
                impossible_times_are_moved,
                clicks_are_ranked_by_what_they_have_in_common,
                few_of_many_values_are_ranked_and_none_is_lost,
                a_foreign_cursor_is_refused
            );
        }
    };
}

/// The tests of a click stream that is read; `$open` gives a [`Written`](source::Written).
#[macro_export]
macro_rules! click_source_tests {
    ($open:expr) => {
        mod click_source {
            use super::*;
            $crate::clause_tests!(
                $open,
                clicks::source,
                a_new_stream_is_empty,
                records_come_back_whole_and_in_order,
                a_poll_may_be_repeated_and_resumed,
                a_poll_waits_for_the_first_record,
                a_commit_never_goes_back,
                racing_writers_lose_nothing,
                shared_texts_come_back_with_their_records
            );
        }
    };
}

/// The tests of a click stream that is appended to; `$open` gives a [`Stream`](sink::Stream).
#[macro_export]
macro_rules! click_sink_tests {
    ($open:expr) => {
        mod click_sink {
            use super::*;
            $crate::clause_tests!(
                $open,
                clicks::sink,
                records_keep_their_order,
                called_twice_nothing_changes,
                a_batch_that_overlaps_adds_its_rest,
                producers_are_apart,
                racing_appends_lose_and_double_nothing
            );
        }
    };
}

/// The tests of dead letters; `$open` gives [`Letters`](dead_letters::Letters).
#[macro_export]
macro_rules! dead_letter_tests {
    ($open:expr) => {
        mod dead_letters {
            use super::*;
            $crate::clause_tests!(
                $open,
                clicks::dead_letters,
                every_call_counts,
                racing_letters_all_count
            );
        }
    };
}

/// The tests of counters; `$open` gives fresh ones.
#[macro_export]
macro_rules! click_counter_tests {
    ($open:expr) => {
        mod click_counters {
            use super::*;
            $crate::clause_tests!(
                $open,
                clicks::counters,
                an_unknown_partition_has_no_window,
                counts_and_offset_move_together_c1,
                a_window_is_kept_until_it_is_forgotten_by_its_name_c1,
                partitions_are_apart,
                names_and_pieces_are_kept_verbatim,
                the_size_follows_what_is_new,
                one_racer_adds_c1
            );
        }
    };
}

/// The day of most samples.
const DAY: u32 = 19_000;

fn day(number: u32) -> Day {
    Day::numbered(number)
}

/// The start of an hour of [`DAY`], or of the days around it.
fn hour(hour: i64) -> UnixMillis {
    UnixMillis(day(DAY).start().0 + hour * 3_600_000)
}

fn sum(at: i64, dimension: Dimension, value: &str, count: u64) -> Rollup {
    Rollup {
        hour: hour(at),
        dimension,
        value: value.into(),
        count,
    }
}

fn link(key: &str) -> ClickSubject {
    ClickSubject::Link(id(key), 1)
}

fn counted(subject: ClickSubject, rollups: Vec<Rollup>) -> SubjectDay {
    SubjectDay {
        subject,
        day: day(DAY),
        rollups,
        visitors: Sketch::new(),
    }
}

/// Rollups of one link in one flush.
fn flush(from: u64, to: u64, key: &str, rollups: Vec<Rollup>) -> ClickWindow {
    flush_of(from, to, vec![counted(link(key), rollups)])
}

fn flush_of(from: u64, to: u64, days: Vec<SubjectDay>) -> ClickWindow {
    ClickWindow {
        partition: partition(0),
        from,
        to,
        days: days.into(),
        blocks: Vec::new(),
    }
}

async fn series(store: &Port, subject: &ClickSubject, dimension: Dimension) -> Result<Vec<Rollup>> {
    Ok(store.series(subject, dimension, HourRange::ALL).await?)
}

/// A sketch of visitors with these numbers, which are spread as hashes are.
fn visitors(numbers: impl IntoIterator<Item = u64>) -> Sketch {
    let mut sketch = Sketch::new();
    for number in numbers {
        sketch.insert(StdRng::seed_from_u64(number).random());
    }
    sketch
}

fn click(key: &str, at: i64) -> Click {
    Click {
        at: UnixMillis(at),
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

/// Every click of the subject.
fn all_of(subject: ClickSubject) -> ClickQuery {
    ClickQuery {
        subject,
        from: UnixMillis(i64::MIN),
        before: UnixMillis(i64::MAX),
        filter: ClickFilter::default(),
        cursor: None,
        limit: 100,
    }
}

/// All pages of the query, one after the other.
async fn walk(store: &Port, query: &ClickQuery) -> Result<Vec<Click>> {
    let mut clicks = Vec::new();
    let mut query = query.clone();
    loop {
        let page = store.clicks(&query).await?;
        anyhow::ensure!(
            page.clicks.len() <= query.limit,
            "a page of {} for a limit of {}",
            page.clicks.len(),
            query.limit
        );
        clicks.extend(page.clicks);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(clicks),
        }
    }
}
