//! Words: names say what the glossary says. A word that is still in use has a number of places that may only shrink.

use std::collections::BTreeMap;

use super::lists::Lists;
use super::{Finding, ratchet};
use crate::workspace::{Workspace, crate_of};

/// Names of the standard library.
const FOREIGN: [&str; 2] = ["PoisonError", "fold"];

pub(super) fn check(workspace: &Workspace, lists: &Lists) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<Finding>> = BTreeMap::new();
    for (path, source) in workspace
        .sources
        .iter()
        .filter(|(path, _)| crate_of(path).is_some())
    {
        // One place per name and file: a name is changed in a file at once.
        let mut first_lines: BTreeMap<&str, usize> = BTreeMap::new();
        let tokens = source.layers.tokens();
        for token in &tokens {
            first_lines.entry(token.text).or_insert(token.line);
        }
        for (name, line) in first_lines {
            for part in parts(name).iter().filter(|_| !FOREIGN.contains(&name)) {
                if let Some((word, _)) = lists.words.get_key_value(part) {
                    let what = format!("{name} says \"{word}\"");
                    let mend = "use the field's term, as in the table of terms";
                    places
                        .entry(word)
                        .or_default()
                        .push(Finding::new(path, line, what, mend));
                }
            }
        }
    }
    let words = lists.words.iter();
    words
        .flat_map(|(word, allowed)| {
            ratchet(
                &format!("words.{word}"),
                *allowed,
                places.remove(word.as_str()).unwrap_or_default(),
            )
        })
        .collect()
}

/// Splits a name into its words, in lower case: `PenHolder` and `pen_holder` have the same.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_lower_before = false;
    for sign in name.chars() {
        if sign == '_' || (sign.is_uppercase() && is_lower_before) {
            parts.push(String::new());
        }
        is_lower_before = sign.is_lowercase() || sign.is_ascii_digit();
        if sign != '_'
            && let Some(part) = parts.last_mut()
        {
            part.extend(sign.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_word_in_a_name_is_found() {
        let workspace = Workspace::of(&[
            (
                "crates/a/src/lib.rs",
                "struct PenHolder;\nfn open_pen() { open_pen() }\n// a pen\nlet open = pending;",
            ),
            ("crates/a/tests/b.rs", "let roster = \"pen\";"),
        ]);
        let found = check(&workspace, &Lists::of("words = { pen = 1, roster = 1 }"));
        let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            what,
            [
                "PenHolder says \"pen\" (2 of these, 1 excepted)",
                "open_pen says \"pen\" (2 of these, 1 excepted)"
            ]
        );
        assert_eq!(
            check(&workspace, &Lists::of("words = { pen = 2, roster = 0 }"))[0].what,
            "roster says \"roster\" (1 of these, 0 excepted)"
        );
    }
}
