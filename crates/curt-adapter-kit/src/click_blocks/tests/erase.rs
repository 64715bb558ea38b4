use super::*;

/// Blocks of ten clicks, one of them of link 1.
fn filled_for_erasure(blocks: u64) -> Table {
    let mut random = StdRng::seed_from_u64(11);
    let table = Table::default();
    for window in 0..blocks {
        let mut clicks: Vec<Click> = (0..10)
            .map(|n| random_click(&mut random, (window * 100 + n) as i64))
            .collect();
        for (n, click) in clicks.iter_mut().enumerate() {
            click.outcome = link(if n == 3 { 1 } else { 2 });
        }
        table.add(encode(partition(0), window, &clicks));
    }
    table
}

fn subject(number: u32) -> ClickSubject {
    match link(number) {
        ClickOutcome::Link(id, generation) => ClickSubject::Link(id, generation),
        _ => unreachable!(),
    }
}

#[tokio::test]
async fn erased_clicks_are_found_where_they_were_moved_to_meanwhile() {
    let table = filled_for_erasure(20);
    table.0.lock().unwrap().merges_at_read = true;
    let erasure = erase(&table, subject(1), 1_000).await.unwrap();
    assert!(erasure.is_complete);
    assert_eq!(erasure.erased, 20);
    assert_eq!(walk(&table, query(subject(1), 7)).await, vec![]);
    assert_eq!(walk(&table, query(subject(2), 7)).await.len(), 180);
    assert!(
        table.entries().len() < 20,
        "small blocks were merged meanwhile"
    );
}

#[tokio::test]
async fn an_erasure_changes_no_more_blocks_than_it_may() {
    let table = filled_for_erasure(40);
    for want in [17, 17, 6] {
        let erasure = erase(&table, subject(1), 17).await.unwrap();
        assert_eq!(erasure.erased, want);
        assert_eq!(erasure.is_complete, want == 6);
    }
    assert_eq!(walk(&table, query(subject(2), 50)).await.len(), 360);
}

#[tokio::test]
async fn a_damaged_block_is_told_of_after_all_others_are_erased() {
    let table = filled_for_erasure(20);
    table.0.lock().unwrap().blocks[7].1.bytes.truncate(40);
    for _ in 0..2 {
        let error = erase(&table, subject(1), 1_000).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(error.to_string().contains("block 8"), "{error}");
    }
    table.0.lock().unwrap().blocks.retain(|(id, _)| *id != 8);
    assert_eq!(walk(&table, query(subject(1), 50)).await, vec![]);
    assert_eq!(walk(&table, query(subject(2), 50)).await.len(), 171);
}
