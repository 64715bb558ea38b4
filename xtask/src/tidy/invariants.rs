//! Invariant ids: each id of `docs/invariants.md` is asserted somewhere, and every id in the sources is in that page.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::lex::is_word;
use crate::workspace::{Source, Workspace};

const PAGE: &str = "docs/invariants.md";

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let page = workspace.texts.get(PAGE).map_or("", String::as_str);
    let mut promised: BTreeMap<&str, usize> = BTreeMap::new();
    for (line, text) in page.lines().enumerate() {
        if let Some((_, id)) = ids(text.strip_prefix("| ").unwrap_or(""))
            .first()
            .filter(|(at, _)| *at == 0)
        {
            promised.insert(id, line + 1);
        }
    }
    let mut findings = Vec::new();
    let mut asserted = BTreeSet::new();
    for (path, source) in &workspace.sources {
        if path.starts_with("xtask/") {
            continue;
        }
        asserted.extend(asserted_in(source));
        for (line, text) in source.text.lines().enumerate() {
            for (_, id) in ids(text)
                .iter()
                .filter(|(_, id)| !promised.contains_key(id))
            {
                let mend = format!("add {id} to {PAGE}, or name the promise that is meant");
                findings.push(Finding::new(
                    path,
                    line + 1,
                    format!("{id} is no invariant"),
                    mend,
                ));
            }
        }
    }
    for (id, line) in promised.iter().filter(|(id, _)| !asserted.contains(**id)) {
        let mend = "name it in the message of an assertion or at the end of a test's name (`…_k1`)";
        findings.push(Finding::new(
            PAGE,
            *line,
            format!("{id} is asserted nowhere"),
            mend,
        ));
    }
    findings
}

/// Returns the ids that messages of assertions and names of functions in one file hold. Messages are strings: an id in
/// a comment asserts nothing.
fn asserted_in(source: &Source) -> Vec<String> {
    let messages = ids(&source.layers.strings)
        .into_iter()
        .map(|(_, id)| id.to_owned());
    let tokens = source.layers.tokens();
    let functions = tokens
        .windows(2)
        .filter(|two| two[0].text == "fn")
        .map(|two| two[1].text);
    let parts = functions.flat_map(|name| {
        name.split('_')
            .filter(|part| part.len() == 2 && part.is_ascii())
    });
    let named = parts.map(|part| format!("{}-{}", part[..1].to_uppercase(), &part[1..]));
    messages.chain(named).collect()
}

/// Returns the ids in a text and where they stand.
fn ids(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('-') {
        let Some(start) = at.checked_sub(1) else {
            continue;
        };
        let Some(id) = text.get(start..at + 2) else {
            continue;
        };
        let before = text[..start].chars().next_back();
        let after = text[at + 2..].chars().next();
        let is_whole = |sign: Option<char>| sign.is_none_or(|sign| !is_word(sign) && sign != '-');
        if id.starts_with(['K', 'L', 'C', 'R'])
            && id.ends_with(|sign: char| matches!(sign, '1'..='9'))
            && is_whole(before)
            && is_whole(after)
        {
            found.push((start, id));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_without_assertion_and_an_id_without_promise_are_found() {
        let workspace = Workspace::of(&[
            (
                PAGE,
                "# Invariants\n| K-1 | a |\n| L-2 | b (K-1) |\n| C-1 | c |\n| R-1 | d |\n",
            ),
            (
                "crates/a/src/lib.rs",
                "// C-1\n// L-9: UTF-8, ZOOKEEPER-1262\nassert!(x, \"R-1: held\");",
            ),
            ("crates/a/tests/b.rs", "fn keys_are_distinct_k1() {}"),
        ]);
        let found: Vec<(String, usize, String)> = check(&workspace)
            .into_iter()
            .map(|finding| (finding.file, finding.line, finding.what))
            .collect();
        let place = |file: &str, line, what: &str| (file.to_owned(), line, what.to_owned());
        assert_eq!(
            found,
            [
                place("crates/a/src/lib.rs", 2, "L-9 is no invariant"),
                place(PAGE, 4, "C-1 is asserted nowhere"),
                place(PAGE, 3, "L-2 is asserted nowhere"),
            ]
        );
    }
}
