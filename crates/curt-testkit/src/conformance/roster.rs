//! Clauses of [`Roster`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use curt_core::ports::{Member, Roster};

use super::{Suite, race, run_clauses, same};

type Port = Arc<dyn Roster>;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(400);
const LONGER: Duration = Duration::from_millis(600);

/// Two processes that look at the same roster, which is empty.
pub struct Lookers {
    pub first: Port,
    pub second: Port,
}

/// `make` gives an empty roster as two processes see it.
pub async fn suite(make: impl AsyncFn() -> Lookers) {
    let mut suite = Suite::of("Roster");
    run_clauses!(
        suite,
        make,
        everybody_is_seen_by_everybody,
        the_last_word_counts,
        who_leaves_is_gone,
        many_announce_at_once,
    );
    suite.finish();
}

/// For engines that forget by the clock; `pass` lets time pass.
pub async fn who_falls_silent_is_forgotten(roster: Port, pass: impl AsyncFn(Duration)) {
    let mut suite = Suite::of("Roster");
    let forgotten = async {
        roster.announce("a", "x", SHORT).await?;
        roster.announce("b", "y", LONG).await?;
        pass(LONGER).await;
        same(
            "after its time",
            names(&roster).await?,
            ["b"].map(str::to_owned).to_vec(),
        )?;
        roster.announce("a", "again", SHORT).await?;
        same(
            "said again",
            said(&roster, "a").await?,
            Some("again".into()),
        )
    };
    suite
        .clause("who_falls_silent_is_forgotten", forgotten)
        .await;
    suite.finish();
}

async fn names(roster: &Port) -> Result<Vec<String>> {
    let members = roster.members().await?;
    Ok(members.into_iter().map(|m| m.name.into()).collect())
}

async fn said(roster: &Port, name: &str) -> Result<Option<Box<str>>> {
    let members = roster.members().await?;
    let found = members.into_iter().find(|member| *member.name == *name);
    Ok(found.map(|Member { says, .. }| says))
}

async fn everybody_is_seen_by_everybody(rosters: Lookers) -> Result<()> {
    let Lookers { first, second } = rosters;
    same("empty", names(&first).await?, Vec::new())?;
    first.announce("b-1", "one two  three", LONG).await?;
    second.announce("a2", "", LONG).await?;
    for roster in [&first, &second] {
        same(
            "in order",
            names(roster).await?,
            vec!["a2".into(), "b-1".into()],
        )?;
        same(
            "said",
            said(roster, "b-1").await?,
            Some("one two  three".into()),
        )?;
        same("said nothing", said(roster, "a2").await?, Some("".into()))?;
    }
    Ok(())
}

async fn the_last_word_counts(rosters: Lookers) -> Result<()> {
    let Lookers { first, second } = rosters;
    for text in ["0", "10", "2"] {
        first.announce("a", text, LONG).await?;
        same("said", said(&second, "a").await?, Some(text.into()))?;
    }
    same("one entry", names(&second).await?.len(), 1)
}

async fn who_leaves_is_gone(rosters: Lookers) -> Result<()> {
    let Lookers { first, second } = rosters;
    first.announce("a", "x", LONG).await?;
    second.announce("b", "y", LONG).await?;
    first.leave("a").await?;
    same("left", names(&second).await?, vec!["b".into()])?;
    first.leave("a").await?;
    first.leave("never-there").await?;
    first.announce("a", "back", LONG).await?;
    same("back", said(&second, "a").await?, Some("back".into()))
}

async fn many_announce_at_once(rosters: Lookers) -> Result<()> {
    let Lookers { first, second } = rosters;
    race(16, |n| {
        let roster = Arc::clone(if n % 2 == 0 { &first } else { &second });
        async move {
            roster
                .announce(&format!("m{n}"), &n.to_string(), LONG)
                .await
        }
    })
    .await?;
    same("all", names(&first).await?.len(), 16)
}
