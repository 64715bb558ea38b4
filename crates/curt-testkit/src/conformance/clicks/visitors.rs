use anyhow::{Result, ensure};
use curt_core::{Day, Sketch, SubjectDay};

use super::{DAY, Port, counted, day, flush_of, link, visitors};
use crate::conformance::same;

fn seen(key: &str, number: u32, visitors: Sketch) -> SubjectDay {
    SubjectDay {
        day: day(number),
        visitors,
        ..counted(link(key), Vec::new())
    }
}

pub async fn a_visitor_of_two_flushes_is_one(store: Port) -> Result<()> {
    for (from, numbers) in [(0, 0..6), (1, 3..9)] {
        let days = vec![
            seen("a", DAY, visitors(numbers)),
            seen("a", DAY, visitors([4])),
        ];
        store.apply(flush_of(from, from + 1, days)).await?;
    }
    let got = store.visitors(&link("a"), Day::FIRST, Day::LAST).await?;
    same("visitors", got, vec![(day(DAY), 9)])
}

pub async fn days_and_links_have_their_own_visitors(store: Port) -> Result<()> {
    let days = vec![
        seen("a", DAY, visitors(0..5)),
        seen("a", DAY + 2, visitors(0..7)),
        seen("b", DAY + 1, visitors(0..2)),
    ];
    store.apply(flush_of(0, 1, days)).await?;
    for (from, before, want) in [
        (DAY, DAY + 3, vec![(day(DAY), 5), (day(DAY + 2), 7)]),
        (DAY + 1, DAY + 3, vec![(day(DAY + 2), 7)]),
        (DAY, DAY + 2, vec![(day(DAY), 5)]),
        (DAY + 2, DAY, vec![]),
    ] {
        let got = store.visitors(&link("a"), day(from), day(before)).await?;
        same(&format!("[{from}, {before})"), got, want)?;
    }
    Ok(())
}

pub async fn many_visitors_are_estimated(store: Port) -> Result<()> {
    for from in 0..10 {
        let numbers = from * 1_000..(from + 2) * 1_000;
        let days = vec![seen("a", DAY, visitors(numbers))];
        store.apply(flush_of(from, from + 1, days)).await?;
    }
    let got = store.visitors(&link("a"), day(DAY), day(DAY + 1)).await?;
    let [(_, about)] = got[..] else {
        anyhow::bail!("expected one day, got {got:?}");
    };
    ensure!(about.abs_diff(11_000) < 11_000 / 20, "about {about}");
    Ok(())
}
