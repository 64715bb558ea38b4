use std::sync::Arc;

use anyhow::{Result, ensure};
use curt_core::account::ApiKeyNumber;
use curt_core::ports::{ChangeReply, ListQuery, SpendReply};
use curt_core::{ErrorKind, KeyOrigin, Link, LinkState, OwnerId, Revision};

use super::{Port, add, changed, current_counts, stored};
use crate::conformance::{RACERS, race, same};
use crate::sample::{NOW, OWNER, SampleWrites, full_link, id, later, link, target};

const SECOND: Revision = Revision {
    generation: 1,
    version: 2,
};

pub async fn an_update_replaces_the_link(store: Port) -> Result<()> {
    add(&store, [link("a"), link("b")]).await?;
    let edit = Link {
        target: target("https://new.example/"),
        updated_at: later(1),
        revision: Revision {
            generation: 77,
            version: 77,
        },
        ..link("a")
    };
    let want = Link {
        revision: SECOND,
        ..edit.clone()
    };
    let got = changed(&store, store.update_at(edit, Revision::FIRST).await?).await?;
    same("the reply", got, want.clone())?;
    same("as stored", stored(&store, &id("a")).await?, want)?;
    same("the other", stored(&store, &id("b")).await?, link("b"))
}

pub async fn an_update_never_changes_who_and_when(store: Port) -> Result<()> {
    let made = Link {
        made_with: Some(ApiKeyNumber(7)),
        ..link("a")
    };
    add(&store, [made.clone()]).await?;
    let edit = Link {
        owner: OwnerId(666),
        made_with: None,
        origin: KeyOrigin::Alias,
        created_at: later(99),
        updated_at: later(1),
        ..link("a")
    };
    let got = changed(&store, store.update_at(edit, Revision::FIRST).await?).await?;
    let want = Link {
        revision: SECOND,
        updated_at: later(1),
        ..made
    };
    same("owner, API key, origin and creation", got, want.clone())?;
    same("as stored", stored(&store, &id("a")).await?, want)?;
    let counts = current_counts(&store).await?;
    same("from the ledger", counts.created_from(KeyOrigin::Ledger), 1)
}

pub async fn a_link_is_handed_over_to_another_owner(store: Port) -> Result<()> {
    let made = Link {
        made_with: Some(ApiKeyNumber(7)),
        ..full_link("a")
    };
    add(&store, [made.clone(), link("b")]).await?;
    let (heir, seen) = (OwnerId(77), made.revision);
    let given = store.hand_over_at(&id("a"), seen, heir, later(1)).await?;
    let want = Link {
        owner: heir,
        updated_at: later(1),
        revision: seen.edited(),
        ..made.clone()
    };
    same("the link", changed(&store, given).await?, want)?;
    same("the other", stored(&store, &id("b")).await?, link("b"))?;
    for (owner, keys) in [(heir, vec!["a"]), (made.owner, vec![])] {
        let query = ListQuery {
            owner: Some(owner),
            limit: 10,
            ..ListQuery::default()
        };
        let listed = store.list(&query).await?.links;
        let listed: Vec<&str> = listed.iter().map(|link| link.id.key.as_str()).collect();
        let listed: Vec<&str> = listed.into_iter().filter(|key| *key == "a").collect();
        same("by owner", listed, keys)?;
    }
    let again = store.hand_over_at(&id("a"), seen, OWNER, later(2)).await?;
    same("twice", again, ChangeReply::Stale(seen.edited()))?;
    let nothing = store.hand_over_at(&id("z"), seen, heir, later(2)).await?;
    same("nothing", nothing, ChangeReply::Absent)?;
    store.delete_at(&id("a"), seen.edited(), later(3)).await?;
    let late = seen.edited().edited();
    let gone = store.hand_over_at(&id("a"), late, heir, later(4)).await?;
    same("a tombstone", gone, ChangeReply::Absent)
}

pub async fn an_update_of_another_revision_is_stale(store: Port) -> Result<()> {
    add(&store, [link("a")]).await?;
    changed(&store, store.update_at(link("a"), Revision::FIRST).await?).await?;
    let wrong = [
        Revision::FIRST,
        Revision::default(),
        SECOND.edited(),
        Revision {
            generation: 2,
            version: 2,
        },
    ];
    let edit = Link {
        target: target("https://new.example/"),
        ..link("a")
    };
    for seen in wrong {
        let got = store.update_at(edit.clone(), seen).await?;
        same(
            "stale, with the revision now",
            got,
            ChangeReply::Stale(SECOND),
        )?;
    }
    let got = stored(&store, &id("a")).await?;
    same("unchanged", got.target, link("a").target)
}

pub async fn an_update_of_nothing_is_absent(store: Port) -> Result<()> {
    let update = |key| store.update_at(link(key), Revision::FIRST);
    same("unknown", update("a").await?, ChangeReply::Absent)?;
    same("still unknown", store.get(&id("a")).await?, None)?;
    add(&store, [link("a")]).await?;
    let tombstone = changed(&store, store.delete(&id("a"), NOW).await?).await?;
    let got = store.update_at(link("a"), tombstone.revision).await?;
    same("a tombstone", got, ChangeReply::Absent)?;
    same("stays", stored(&store, &id("a")).await?, tombstone)
}

pub async fn an_update_sets_and_clears_every_field(store: Port) -> Result<()> {
    let plain = Link {
        owner: full_link("a").owner,
        made_with: full_link("a").made_with,
        origin: full_link("a").origin,
        created_at: full_link("a").created_at,
        ..link("a")
    };
    add(&store, [plain.clone()]).await?;
    let set = changed(
        &store,
        store.update_at(full_link("a"), Revision::FIRST).await?,
    )
    .await?;
    let want = Link {
        revision: SECOND,
        ..full_link("a")
    };
    same("set", set, want.clone())?;
    same("as stored", stored(&store, &id("a")).await?, want)?;
    let cleared = changed(&store, store.update_at(plain.clone(), SECOND).await?).await?;
    let want = Link {
        revision: SECOND.edited(),
        ..plain
    };
    same("cleared", cleared, want.clone())?;
    same("as stored", stored(&store, &id("a")).await?, want)
}

pub async fn one_racing_update_wins(store: Port) -> Result<()> {
    add(&store, [link("a")]).await?;
    let replies = race(RACERS, |n| {
        let store = Arc::clone(&store);
        let edit = Link {
            target: target(&format!("https://example.com/{n}")),
            ..link("a")
        };
        async move { store.update_at(edit, Revision::FIRST).await }
    })
    .await?;
    let mut winners = Vec::new();
    for reply in replies {
        match reply {
            reply @ ChangeReply::Changed(_) => winners.push(changed(&store, reply).await?),
            other => same("the others", other, ChangeReply::Stale(SECOND))?,
        }
    }
    ensure!(winners.len() == 1, "{} racers won", winners.len());
    same(
        "the winner's",
        stored(&store, &id("a")).await?,
        winners.remove(0),
    )
}

/// Every field is there again, and the totals are as before.
pub async fn a_deleted_link_is_kept_and_restored(store: Port) -> Result<()> {
    for (key, live, gone) in [
        ("active", LinkState::Active, LinkState::Deleted),
        ("disabled", LinkState::Disabled, LinkState::DeletedDisabled),
    ] {
        let full = Link {
            state: live,
            ..full_link(key)
        };
        add(&store, [full.clone()]).await?;
        let before = current_counts(&store).await?;
        let deleted = Link {
            state: gone,
            updated_at: later(7),
            ..full.clone()
        };
        let got = store.update_at(deleted.clone(), full.revision).await?;
        let want = Link {
            revision: full.revision.edited(),
            ..deleted
        };
        same("deleted", changed(&store, got).await?, want.clone())?;
        same("as stored", stored(&store, &id(key)).await?, want.clone())?;
        let counts = current_counts(&store).await?;
        same("live", counts.live + 1, before.live)?;
        same("counted as deleted", counts.deleted, before.deleted + 1)?;
        let taken = store.insert(vec![link(key)]).await?;
        same("the key is not free", taken, vec![false])?;

        let back = Link {
            state: gone.restored(),
            updated_at: later(8),
            ..want.clone()
        };
        let got = store.update_at(back, want.revision).await?;
        let want = Link {
            updated_at: later(8),
            revision: want.revision.edited(),
            ..full
        };
        same("restored", changed(&store, got).await?, want)?;
        same("the totals", current_counts(&store).await?, before)?;
    }
    Ok(())
}

pub async fn a_deleted_link_grants_no_click_l2(store: Port) -> Result<()> {
    let limited = Link {
        max_clicks: Some(5),
        ..link("a")
    };
    add(&store, [limited.clone()]).await?;
    let deleted = Link {
        state: LinkState::Deleted,
        ..limited
    };
    let deleted = changed(&store, store.update_at(deleted, Revision::FIRST).await?).await?;
    let got = store.spend_click(&id("a"), deleted.revision).await?;
    same("no click", got, SpendReply::Stale)?;
    same("none taken", store.clicks_spent(&id("a")).await?, 0)
}

pub async fn an_update_makes_no_tombstone(store: Port) -> Result<()> {
    add(&store, [link("a")]).await?;
    for state in [LinkState::Tombstone, LinkState::Seeded] {
        let edit = Link { state, ..link("a") };
        let refused = store.update_at(edit, Revision::FIRST).await;
        let kind = refused.err().map(|error| error.kind);
        same("refused", kind, Some(ErrorKind::Invalid))?;
    }
    same("unchanged", stored(&store, &id("a")).await?, link("a"))
}

pub async fn a_deletion_leaves_a_tombstone_l3(store: Port) -> Result<()> {
    let full = Link {
        state: LinkState::Active,
        ..full_link("a")
    };
    add(&store, [full.clone(), link("b")]).await?;
    let want = Link {
        state: LinkState::Tombstone,
        revision: full.revision.edited(),
        updated_at: later(5),
        title: None,
        tags: Vec::new(),
        password_hash: None,
        ..full
    };
    let got = changed(&store, store.delete(&id("a"), later(5)).await?).await?;
    same("the reply", got, want.clone())?;
    same("as stored", stored(&store, &id("a")).await?, want.clone())?;
    let again = store.delete(&id("a"), later(9)).await?;
    same("called twice", again, ChangeReply::Absent)?;
    same("unchanged", stored(&store, &id("a")).await?, want)?;
    same("the other", stored(&store, &id("b")).await?, link("b"))
}

pub async fn a_deletion_of_another_revision_is_stale(store: Port) -> Result<()> {
    add(&store, [link("a")]).await?;
    let got = store.delete_at(&id("a"), SECOND, NOW).await?;
    same("stale", got, ChangeReply::Stale(Revision::FIRST))?;
    same("unchanged", stored(&store, &id("a")).await?, link("a"))?;
    let got = changed(
        &store,
        store.delete_at(&id("a"), Revision::FIRST, NOW).await?,
    )
    .await?;
    same("at that revision", got.state, LinkState::Tombstone)?;
    same("its owner", got.owner, OWNER)
}

pub async fn a_deletion_of_nothing_is_absent(store: Port) -> Result<()> {
    let got = store.delete_at(&id("a"), Revision::FIRST, NOW).await?;
    same("unknown", got, ChangeReply::Absent)
}

pub async fn one_racing_deletion_wins(store: Port) -> Result<()> {
    add(&store, [link("a")]).await?;
    let replies = race(RACERS, |_| {
        let store = Arc::clone(&store);
        async move { store.delete_at(&id("a"), Revision::FIRST, NOW).await }
    })
    .await?;
    let won = |reply: &&ChangeReply| matches!(reply, ChangeReply::Changed(_));
    same("winners", replies.iter().filter(won).count(), 1)?;
    same("deleted", current_counts(&store).await?.deleted, 1)
}
