//! Clauses of the ports of links, a file for each part, and the tests that run them: one per clause.

mod agreement;
pub mod change;
pub mod claim;
pub mod counts;
pub mod durable;
pub mod expiry;
pub mod filter;
pub mod idempotency;
pub mod insert;
pub mod list;
pub mod spend;
pub mod values;

pub use agreement::agreement;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use curt_core::ports::{
    ChangeReply, LinkChange, LinkCounts, LinkDatabase, LinkStore, LinkTotals, SeededDatabase,
};
use curt_core::{KeyOrigin, Link, LinkId};

use super::same;
use crate::sample::SampleWrites;

type Port = Arc<dyn LinkDatabase>;
type Seeded = Arc<dyn SeededDatabase>;

/// The tests of the ports that a links database serves. `$open` gives a fresh one, with what keeps it alive.
#[macro_export]
macro_rules! link_tests {
    ($open:expr) => {
        mod link_store {
            use super::*;
            $crate::clause_tests!(
                $open,
                links::insert,
                absent_is_none,
                answers_a_ping,
                an_id_is_given_once_k1,
                items_are_independent_and_in_order,
                the_first_of_two_in_one_request_wins,
                a_row_in_any_state_makes_an_id_taken_k1,
                keys_differ_by_case_k1,
                domains_are_apart_k1,
                an_empty_request_does_nothing,
                a_thousand_links_at_once,
                one_racer_wins_k1,
                racing_bulks_win_each_key_once_k1
            );
            $crate::clause_tests!(
                $open,
                links::values,
                every_field_is_kept,
                every_stored_word_is_kept,
                keys_hold_every_symbol_and_length,
                texts_are_kept_verbatim,
                the_longest_values_are_kept,
                extreme_times_are_kept,
                numbers_are_kept_or_refused
            );
            $crate::clause_tests!(
                $open,
                links::change,
                an_update_replaces_the_link,
                an_update_never_changes_who_and_when,
                a_link_is_handed_over_to_another_owner,
                an_update_of_another_revision_is_stale,
                an_update_of_nothing_is_absent,
                an_update_sets_and_clears_every_field,
                one_racing_update_wins,
                a_deleted_link_is_kept_and_restored,
                a_deleted_link_grants_no_click_l2,
                an_update_makes_no_tombstone,
                a_deletion_leaves_a_tombstone_l3,
                a_deletion_of_another_revision_is_stale,
                a_deletion_of_nothing_is_absent,
                one_racing_deletion_wins
            );
            $crate::clause_tests!(
                $open,
                links::spend,
                as_many_clicks_as_allowed_are_granted,
                racers_are_granted_what_is_left,
                a_link_without_a_limit_grants_all,
                a_limit_of_nothing_grants_nothing,
                only_the_link_that_was_seen_grants,
                an_edit_keeps_what_was_spent,
                a_released_key_starts_over
            );
        }
        mod link_index {
            use super::*;
            $crate::clause_tests!(
                $open,
                links::list,
                an_empty_store_has_one_empty_page,
                only_links_are_listed,
                an_owner_sees_its_own,
                a_list_shows_whole_links,
                every_order_is_kept_over_pages,
                links_of_one_instant_are_seen_once_each,
                a_walk_survives_changes,
                foreign_cursors_are_refused
            );
            $crate::clause_tests!(
                $open,
                links::filter,
                filters_by_time,
                filters_by_effective_state,
                filters_by_tags,
                searches_key_target_and_title,
                searches_literally,
                filters_meet,
                a_filtered_walk_finds_all,
                an_edited_link_is_listed_as_it_is
            );
            $crate::clause_tests!(
                $open,
                links::expiry,
                expired_links_come_oldest_first,
                only_active_links_expire,
                deleted_links_end_by_their_deletion,
                a_purge_leaves_tombstones_l3,
                a_purge_checks_again,
                racing_purges_change_each_link_once,
                a_release_waits_for_the_quarantine_l3,
                a_release_keeps_what_must_not_return_l3,
                a_release_stops_at_its_limit,
                racing_releases_are_disjoint,
                the_next_link_of_a_released_key_has_the_next_generation
            );
        }
        mod link_totals {
            use super::*;
            $crate::clause_tests!(
                $open,
                links::counts,
                counts_follow_every_write_k2,
                counts_stay_exact_under_races_k2
            );
        }
        mod idempotency {
            use super::*;
            $crate::clause_tests!(
                $open,
                links::idempotency,
                a_request_begins_once,
                a_request_that_did_not_finish_is_resumed,
                a_finished_request_is_replayed,
                a_different_request_is_a_mismatch,
                a_plan_is_replaced_once_per_version,
                the_first_outcome_stays,
                a_record_of_another_request_is_left_alone,
                owners_have_their_own_keys,
                texts_of_keys_are_kept_verbatim,
                records_count_for_their_time_and_no_longer,
                a_request_that_nothing_came_of_is_cancelled,
                old_records_are_forgotten_up_to_the_limit,
                a_thousand_keys_are_kept,
                creating_at_once_is_all_three_steps,
                creating_at_once_stops_at_a_taken_key,
                racing_requests_share_a_plan,
                a_link_tells_its_request_k1,
                racing_retries_create_each_link_once_k1
            );
        }
    };
}

/// The same of [`SeededLinks`].
#[macro_export]
macro_rules! seeded_link_tests {
    ($open:expr) => {
        mod seeded_links {
            use super::*;
            $crate::clause_tests!(
                $open,
                links::claim,
                seeding_skips_what_exists,
                a_seed_is_nobodys,
                seeds_are_counted_k2,
                a_claim_gives_each_link_a_seed_of_its_own,
                a_claim_keeps_the_whole_link,
                a_claim_serves_the_first_when_seeds_run_out,
                a_claim_stays_in_its_domain,
                racing_claims_never_share_a_seed_k1,
                a_seed_of_a_released_key_is_claimed_with_the_next_generation
            );
        }
    };
}

/// Inserts links whose keys are free.
async fn add(
    store: &Arc<impl LinkStore + ?Sized>,
    links: impl IntoIterator<Item = Link>,
) -> Result<()> {
    let links: Vec<Link> = links.into_iter().collect();
    let want = vec![true; links.len()];
    same("inserted", store.insert(links).await?, want)
}

/// The link, which must be there.
async fn stored(store: &Arc<impl LinkStore + ?Sized>, id: &LinkId) -> Result<Link> {
    let link = store.get(id).await?;
    link.with_context(|| format!("{id} is not stored"))
}

/// The link as a change left it.
async fn changed(store: &Arc<impl LinkStore + ?Sized>, reply: ChangeReply) -> Result<Link> {
    match reply {
        ChangeReply::Changed(change) => {
            let link = stored(store, &change.id).await?;
            same("the revision", change, LinkChange::of(&link))?;
            Ok(link)
        }
        other => bail!("expected a changed link, got {other:?}"),
    }
}

fn ids(links: &[Link]) -> Vec<LinkId> {
    links.iter().map(|link| link.id.clone()).collect()
}

/// Totals that hold everything that was written before this call. Where they lag, asks until they are young enough.
async fn current_counts(store: &Arc<impl LinkTotals + ?Sized>) -> Result<LinkCounts> {
    let asked = Instant::now();
    loop {
        let counts = store.counts().await?;
        if counts.lag <= asked.elapsed() {
            let lag = Duration::ZERO;
            return Ok(LinkCounts { lag, ..counts });
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Totals in a form that does not depend on the order or the zeros of `created`.
fn totals(counts: LinkCounts) -> LinkCounts {
    let created = KeyOrigin::ALL.map(|origin| (origin, counts.created_from(origin)));
    let created = created
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    LinkCounts { created, ..counts }
}

async fn expect_counts(
    store: &Arc<impl LinkTotals + ?Sized>,
    what: &str,
    want: &LinkCounts,
) -> Result<()> {
    let got = totals(current_counts(store).await?);
    same(&format!("counts after {what}"), got, totals(want.clone()))
}
