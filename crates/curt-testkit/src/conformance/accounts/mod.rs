//! Clauses of [`Accounts`], a file for each part of the port.

pub mod api_key_families;
pub mod api_keys;
pub mod audit;
pub mod invites;
pub mod permissions;
pub mod sessions;
pub mod users;

use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::ports::Accounts;

use crate::sample::user;

type Port = Arc<dyn Accounts>;

/// A test for each clause. `$open` gives a fresh adapter, with what keeps it alive.
#[macro_export]
macro_rules! accounts_tests {
    ($open:expr) => {
        mod accounts {
            use super::*;
            $crate::clause_tests!(
                $open,
                accounts::users,
                a_user_is_found_by_id_and_by_email,
                neither_id_nor_email_of_a_user_is_taken_twice,
                every_field_of_a_user_is_kept,
                texts_of_a_user_are_kept_verbatim,
                users_come_in_pages_by_id,
                an_update_replaces_all_but_id_and_creation,
                an_update_clears_what_is_gone,
                an_update_needs_the_time_that_was_seen,
                an_update_takes_no_email_of_another,
                an_update_frees_the_old_email,
                an_update_of_nobody_is_absent,
                anybody_can_sign_in_once_there_is_a_password,
                disabled_users_are_listed,
                a_removed_user_is_gone_with_sessions_and_permissions,
                the_last_administrator_is_not_removed,
                of_administrators_who_remove_each_other_one_stays,
                one_racer_adds_the_user,
                one_racer_updates_the_user,
                one_racer_gets_the_email
            );
            $crate::clause_tests!(
                $open,
                accounts::api_keys,
                an_api_key_is_found_by_prefix,
                every_field_of_an_api_key_is_kept,
                texts_of_an_api_key_are_kept_verbatim,
                numbers_of_api_keys_grow,
                a_prefix_is_taken_once,
                a_user_has_one_key_in_force_of_a_name,
                api_keys_come_by_number_revoked_ones_too,
                an_api_key_is_revoked_once,
                a_later_end_can_be_moved_forward_only,
                a_rotation_replaces_the_key,
                a_rotated_key_stays_in_force_until_its_end,
                a_rotation_that_is_refused_changes_nothing,
                a_key_is_rotated_once,
                an_expired_key_gives_way_to_the_one_with_its_name,
                the_use_of_api_keys_is_noted,
                limits_on_redirections_are_listed,
                one_racer_adds_the_api_key,
                one_racer_gets_the_name,
                one_racer_revokes_the_api_key,
                one_racer_rotates_the_api_key
            );
            $crate::clause_tests!(
                $open,
                accounts::api_key_families,
                parent_and_bucket_of_an_api_key_are_kept,
                a_key_is_added_below_one_in_force_only,
                a_family_ends_with_its_oldest_key,
                a_family_ends_when_its_oldest_key_has_ended_before,
                the_keys_of_a_user_end_with_what_they_made,
                a_successor_keeps_a_parent_that_has_ended,
                a_successor_has_no_new_parent_that_has_ended,
                no_racer_adds_a_key_below_one_that_was_revoked
            );
            $crate::clause_tests!(
                $open,
                accounts::sessions,
                a_session_is_found_by_id,
                the_id_of_a_session_is_taken_once,
                every_field_of_a_session_is_kept,
                texts_of_a_session_are_kept_verbatim,
                sessions_of_a_user_come_newest_first,
                expired_sessions_are_found_but_not_listed,
                a_session_is_ended_once_by_its_user,
                all_sessions_but_one_are_ended,
                the_use_of_a_session_moves_its_expiry,
                expired_sessions_are_purged_in_batches,
                one_racer_adds_the_session,
                one_racer_ends_the_session,
                racing_purges_without_a_limit_share_what_has_expired
            );
            $crate::clause_tests!(
                $open,
                accounts::invites,
                an_invitation_is_found_by_hash_and_stays,
                every_field_of_an_invitation_is_kept,
                the_hash_of_an_invitation_is_taken_once,
                an_invitation_is_taken_once,
                an_expired_invitation_is_as_good_as_absent,
                open_invitations_are_listed_by_their_end,
                one_racer_takes_the_invitation
            );
            $crate::clause_tests!(
                $open,
                accounts::permissions,
                a_permission_lets_one_user_follow_one_link,
                a_permission_is_granted_once,
                every_field_of_a_permission_is_kept,
                a_permission_is_for_one_generation,
                permissions_come_oldest_first,
                a_permission_is_revoked_once_and_for_its_link,
                ids_of_permissions_are_never_given_twice,
                permissions_for_released_links_are_revoked,
                racers_get_the_same_permission,
                one_racer_revokes_the_permission
            );
            $crate::clause_tests!(
                $open,
                accounts::audit,
                actions_come_newest_first,
                actions_come_in_pages,
                every_field_of_an_action_is_kept,
                an_action_that_is_recorded_twice_is_there_twice,
                no_racing_action_is_lost
            );
        }
    };
}

/// A test for each part that must survive reopening; see [`reopening_tests`](crate::reopening_tests).
#[macro_export]
macro_rules! durable_accounts_tests {
    ($open:expr) => {
        mod durable_accounts {
            use super::*;
            $crate::reopening_tests!($open, accounts::users, users_survive_reopening);
            $crate::reopening_tests!($open, accounts::api_keys, api_keys_survive_reopening);
            $crate::reopening_tests!($open, accounts::sessions, sessions_survive_reopening);
            $crate::reopening_tests!($open, accounts::invites, invites_survive_reopening);
            $crate::reopening_tests!($open, accounts::permissions, permissions_survive_reopening);
            $crate::reopening_tests!($open, accounts::audit, audit_survive_reopening);
        }
    };
}

/// A hash with zeros, bytes that are no text, and no two alike.
const MIXED_HASH: [u8; 32] = {
    let mut hash = [0; 32];
    let mut place = 0;
    while place < hash.len() {
        hash[place] = (place * 8) as u8;
        place += 1;
    }
    hash
};

/// Two users to work with: 1 is ann@example.com, 2 is bob@example.com.
async fn with_users(accounts: &Port) -> Result<()> {
    for (id, email) in [(1, "ann@example.com"), (2, "bob@example.com")] {
        ensure!(accounts.add_user(&user(id, email)).await?, "user {email}");
    }
    Ok(())
}

fn winners(outcomes: &[bool]) -> usize {
    outcomes.iter().filter(|won| **won).count()
}
