//! Clauses of the ports that keep copies of links fresh, and the tests that run them: one per clause.

pub mod invalidations;
pub mod link_cache;

/// The tests of a [`LinkCache`](curt_core::ports::LinkCache). `$open` gives an empty
/// [`TimedCache`](link_cache::TimedCache), with what keeps it alive.
#[macro_export]
macro_rules! link_cache_tests {
    ($open:expr) => {
        mod link_cache {
            use super::*;
            $crate::clause_tests!(
                $open,
                caches::link_cache,
                entries_come_in_the_order_asked,
                a_served_link_is_kept_whole,
                a_set_called_twice_starts_its_time_again,
                a_higher_revision_stays,
                an_equal_revision_is_overwritten,
                absence_never_hides_a_link,
                entries_end,
                the_highest_of_racing_sets_stays,
                an_invalidated_link_is_no_entry,
                a_marker_refuses_what_is_older,
                a_marker_accepts_its_revision_and_newer_ones,
                a_marker_is_left_over_nothing,
                a_late_invalidation_changes_nothing,
                a_repeated_marker_starts_its_time_again,
                markers_end,
                an_unknown_outcome_removes_every_revision,
                an_unknown_outcome_refuses_every_set_until_it_ends,
                a_known_revision_does_not_lift_an_unknown_outcome,
                no_racing_set_survives_an_unknown_outcome,
                a_cleared_cache_has_nothing_and_takes_everything,
                usage_is_told
            );
        }
    };
}

/// The tests of [`Invalidations`](curt_core::ports::Invalidations). `$open` gives a channel that nobody else uses, which
/// keeps at least 32 messages for a slow subscriber and at most 10,000, with what keeps it alive.
#[macro_export]
macro_rules! invalidation_tests {
    ($open:expr) => {
        mod invalidations {
            use super::*;
            $crate::clause_tests!(
                $open,
                caches::invalidations,
                every_subscriber_gets_every_message,
                the_changes_of_one_call_come_together,
                sequence_numbers_rise_by_one,
                nothing_comes_from_before_the_subscription,
                no_changes_are_no_message,
                a_message_published_twice_comes_twice,
                a_cancelled_wait_loses_nothing,
                a_subscriber_that_left_holds_up_nothing,
                a_slow_subscriber_has_a_gap,
                every_message_after_a_gap_comes,
                racing_publishers_leave_no_gap
            );
        }
    };
}
