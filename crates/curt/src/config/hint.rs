//! Which name was meant.

/// A hint at the known name that was meant: the one that ends with it, such as `server.listen` for `listen`, or else the
/// one that shares the most letters in order, if one comes close.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a String> + Clone) -> String {
    let ending = format!(".{name}");
    let mut complete = known.clone().filter(|full| full.ends_with(&ending));
    if let Some(first) = complete.next() {
        let all = complete.fold(first.clone(), |all, next| all + " or " + next);
        return format!(": did you mean {all}?");
    }
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, candidate)| format!(": did you mean {candidate}?"))
        .unwrap_or_default()
}

/// Levenshtein distance by bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
