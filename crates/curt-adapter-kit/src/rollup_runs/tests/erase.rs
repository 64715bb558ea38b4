use super::*;

/// Every chunk without its compression.
fn all_bytes(runs: &Runs) -> Vec<u8> {
    let tables = runs.0.lock().unwrap();
    let mut bytes = Vec::new();
    for chunk in tables.runs.values().flat_map(|run| &run.chunks) {
        bytes.extend_from_slice(&chunk.first_key);
        let mut entries = EntryReader::new(std::slice::from_ref(&chunk.content));
        entries.advance().unwrap();
        while let Some(key) = entries.key() {
            bytes.extend_from_slice(key);
            entries.advance().unwrap();
        }
    }
    bytes
}

#[tokio::test]
async fn a_subject_is_erased_from_any_place_of_a_chunk_and_its_neighbours_stay() {
    const SUBJECTS: usize = 3_000;
    let runs = Runs::default();
    let name = |n: usize| format!("key{n:05}");
    let text = "x".repeat(40);
    let days: Vec<SubjectDay> = (0..SUBJECTS)
        .flat_map(|n| [5, 6].map(|day| counted(link(&name(n)), day, &text, n as u64 + 1)))
        .collect();
    runs.add(&days);
    let chunks = runs.0.lock().unwrap().runs[&1].chunks.len();
    assert!(chunks > 3, "{chunks} chunks");
    let firsts: Vec<String> = {
        let tables = runs.0.lock().unwrap();
        let first_keys = tables.runs[&1].chunks.iter().map(|chunk| &chunk.first_key);
        first_keys
            .map(|key| String::from_utf8_lossy(&key[9..]).into_owned())
            .collect()
    };
    let mut erased: Vec<String> = (0..SUBJECTS).step_by(97).map(name).collect();
    erased.extend(firsts);
    erased.push(name(SUBJECTS - 1));
    for key in &erased {
        let erasure = erase(&runs, &link(key), 1_000).await.unwrap();
        assert!(erasure.is_complete);
    }
    for n in (0..SUBJECTS).filter(|n| n % 19 == 0 || erased.contains(&name(*n))) {
        let subject = link(&name(n));
        let series = read_series(&runs, &subject, Dimension::Country, HourRange::ALL).await;
        let want = if erased.contains(&name(n)) { 0 } else { 2 };
        assert_eq!(series.unwrap().len(), want, "{n}");
    }
    let bytes = all_bytes(&runs);
    for key in &erased {
        let is_left = bytes.windows(key.len()).any(|part| part == key.as_bytes());
        assert!(!is_left, "{key}");
    }
}

#[tokio::test]
async fn a_run_that_is_emptied_is_merged_and_reported_like_others() {
    let runs = Runs::default();
    for _ in 0..8 {
        runs.add(&[counted(link("a"), 5, "DE", 1)]);
    }
    runs.add(&[counted(link("b"), 5, "DE", 1)]);
    let first = erase(&runs, &link("a"), 3).await.unwrap();
    assert_eq!((first.erased, first.is_complete), (3, false));
    merge_small(&runs).await.unwrap();
    let rest = erase(&runs, &link("a"), 30).await.unwrap();
    assert!(rest.is_complete && rest.erased > 0, "{rest:?}");
    for (key, want) in [("a", 0), ("b", 1)] {
        let series = read_series(&runs, &link(key), Dimension::Country, HourRange::ALL).await;
        assert_eq!(series.unwrap().len(), want, "{key}");
    }
}

/// Otherwise a merge that had read the run before would bring the subject back.
#[tokio::test]
async fn a_run_that_was_edited_is_not_replaced_by_what_was_read_before() {
    let runs = Runs::default();
    for _ in 0..8 {
        runs.add(&[counted(link("a"), 5, "DE", 1)]);
    }
    let listed = runs.list_small(8).await.unwrap();
    let key = subject_key::subject_key(&link("a"));
    let found = runs.find(&key, Day::FIRST, Day::LAST, 9).await.unwrap();
    assert!(erase(&runs, &link("a"), 1).await.unwrap().erased == 1);
    let merged = encode(&[counted(link("a"), 5, "DE", 8)]).unwrap();
    for merged in merged {
        assert!(!runs.replace(&listed, merged).await.unwrap());
    }
    let stale = found[0].clone();
    let edit = ChunkEdit {
        run: stale.run,
        edits: stale.edits,
        first_key: key,
        bytes_before: 0,
        rest: None,
    };
    assert!(!runs.edit_chunk(edit).await.unwrap());
}
