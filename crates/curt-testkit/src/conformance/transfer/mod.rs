//! Clauses of the ports of copies, and the tests that run them: one per clause.

pub mod follow;
pub mod links;
pub mod nodes;
mod samples;
pub mod stores;

use std::sync::Arc;

use curt_core::ports::{LinkDatabase, LinkShards, LinkTransfer, SeededLinks};

/// The ports of one links database.
pub struct LinkTransferPorts {
    pub links: Arc<dyn LinkDatabase>,
    pub transfer: Arc<dyn LinkTransfer>,
    /// Where rows can be claimed.
    pub seeded: Option<Arc<dyn SeededLinks>>,
}

/// Those of one that can be a node of many.
pub struct NodeTransferPorts {
    pub ports: LinkTransferPorts,
    pub shards: Arc<dyn LinkShards>,
}

/// The tests of [`Transfer`](curt_core::ports::Transfer) for links. `$open` gives fresh [`LinkTransferPorts`], with what
/// keeps them alive.
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
                a_position_of_another_engine_is_refused
            );
        }
    };
}

/// The test of a source that is followed. `$open` as above.
#[macro_export]
macro_rules! followed_link_tests {
    ($open:expr) => {
        mod followed_links {
            use super::*;
            $crate::clause_tests!(
                $open,
                transfer::follow,
                changes_are_followed_until_they_are_forgotten
            );
        }
    };
}

/// The tests of one that can be a node of many. `$open` gives fresh [`NodeTransferPorts`], with what keeps them alive.
#[macro_export]
macro_rules! node_transfer_tests {
    ($open:expr) => {
        mod node_transfer {
            use super::*;
            $crate::clause_tests!(
                $open,
                transfer::nodes,
                one_copy_follows_at_a_time,
                a_sealed_shard_is_refused_l4
            );
        }
    };
}

/// The tests of copies of accounts. `$open` gives fresh [`AccountCopyPorts`](stores::AccountCopyPorts), with what keeps them
/// alive.
#[macro_export]
macro_rules! account_transfer_tests {
    ($open:expr) => {
        mod account_transfer {
            use super::*;
            $crate::clause_tests!(
                $open,
                transfer::stores,
                a_copy_of_accounts_is_the_same,
                what_comes_after_a_copy_of_accounts_is_newer,
                what_others_have_stays_with_them
            );
        }
    };
}

/// The test of copies of clicks. `$open` gives fresh [`ClickCopyPorts`](stores::ClickCopyPorts), with what keeps them alive.
#[macro_export]
macro_rules! click_transfer_tests {
    ($open:expr) => {
        mod click_transfer {
            use super::*;
            $crate::clause_tests!($open, transfer::stores, clicks_go_on_after_a_copy_c1);
        }
    };
}
