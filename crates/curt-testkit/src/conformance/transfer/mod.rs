//! Clauses of the ports of copies, and the tests that run them: one per clause.

pub mod follow;
pub mod links;
mod samples;

use std::sync::Arc;

use curt_core::ports::{LinkShards, LinkTransfer, SeededDatabase};

/// The ports of one links database.
pub struct LinkTransferPorts {
    pub links: Arc<dyn SeededDatabase>,
    pub transfer: Arc<dyn LinkTransfer>,
    pub shards: Arc<dyn LinkShards>,
}

/// The tests of [`LinkTransfer`]. `$open` gives fresh [`LinkTransferPorts`], with what keeps them alive.
#[macro_export]
macro_rules! link_transfer_tests {
    ($open:expr) => {
        mod link_transfer {
            use super::*;
            $crate::clause_tests!(
                $open,
                transfer::links,
                what_is_imported_is_exported_and_counted_k2,
                an_import_that_is_repeated_changes_nothing,
                everything_is_exported_once_and_in_order,
                what_is_newer_stays,
                a_key_of_another_link_stays_with_it_k1,
                the_totals_follow_what_is_replaced_k2,
                a_sealed_shard_is_refused_l4,
                a_position_of_another_engine_is_refused
            );
            $crate::clause_tests!(
                $open,
                transfer::follow,
                changes_are_followed_until_they_are_forgotten,
                one_copy_follows_at_a_time
            );
        }
    };
}
