//! Clauses of the ports of sharding, and the tests that run them: one per clause.

pub mod copies;
pub mod links;
pub mod maps;
pub mod refusals;

/// The tests of [`ShardMaps`](curt_core::ports::ShardMaps). `$open` gives a fresh one, with what keeps it alive.
#[macro_export]
macro_rules! shard_map_tests {
    ($open:expr) => {
        mod shard_maps {
            use super::*;
            $crate::clause_tests!(
                $open,
                shards::maps,
                absent_is_one_node_with_everything,
                a_map_advances_only_from_the_newest,
                one_racer_wins_each_step,
                a_map_that_is_newer_is_told_at_once,
                a_watch_ends_with_the_next_map,
                a_note_is_put_once_per_version
            );
        }
    };
}

/// The same of [`LinkShards`](curt_core::ports::LinkShards).
#[macro_export]
macro_rules! link_shard_tests {
    ($open:expr) => {
        mod link_shards {
            use super::*;
            $crate::clause_tests!(
                $open,
                shards::links,
                a_write_at_the_current_epoch_succeeds,
                a_write_at_an_older_epoch_changes_nothing_l4,
                a_request_is_refused_as_a_whole_l4,
                an_absent_link_of_a_sealed_shard_is_refused_l4,
                work_in_the_background_passes_over_a_sealed_shard_l4,
                a_seal_never_goes_back_l4,
                no_write_lands_after_a_seal_l4,
                a_retry_finds_its_link_at_the_next_epoch,
                counts_of_shards_add_up_k2,
                an_identity_is_made_once
            );
            $crate::clause_tests!(
                $open,
                shards::copies,
                a_shard_that_leaves_and_comes_back_is_the_same_k2,
                changes_are_remembered_until_they_are_forgotten,
                a_mover_that_was_replaced_changes_nothing_l4
            );
            $crate::clause_tests!(
                $open,
                shards::refusals,
                a_shard_that_is_copied_takes_no_writes_before_its_epoch_l4,
                a_retired_shard_is_not_read_through_an_old_map,
                a_request_of_a_sealed_shard_is_refused_l4
            );
        }
    };
}
