//! Type names: one name is one public type in the whole workspace.

use std::collections::BTreeMap;

use super::Finding;
use super::lists::{Lists, PATH};
use crate::workspace::Workspace;

pub(super) fn check(workspace: &Workspace, lists: &Lists) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (path, source) in workspace.product() {
        let tokens = source.layers.tokens();
        for three in tokens
            .windows(3)
            .filter(|three| three[0].line <= source.product_lines)
        {
            if three[0].text == "pub"
                && matches!(
                    three[1].text,
                    "struct" | "enum" | "trait" | "union" | "type"
                )
            {
                // The tokens borrow from the layers, which live as long as the workspace.
                places
                    .entry(three[2].text)
                    .or_default()
                    .push((path, three[2].line));
            }
        }
    }
    let mut findings = Vec::new();
    for (name, places) in &places {
        if places.len() > 1 && !lists.types.contains_key(*name) {
            let list: Vec<String> = places
                .iter()
                .map(|(path, line)| format!("{path}:{line}"))
                .collect();
            let what = format!(
                "public type {name} is declared {} times: {}",
                places.len(),
                list.join(", ")
            );
            let mend = "give each the noun for what it is; two of the same thing become one";
            findings.push(Finding::new(places[0].0, places[0].1, what, mend));
        }
    }
    for name in lists.types.keys() {
        if places
            .get(name.as_str())
            .is_none_or(|places| places.len() < 2)
        {
            findings.push(Finding::new(
                PATH,
                1,
                format!("type {name} is no longer declared twice"),
                "delete its exception",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_type_with_the_name_of_another_is_found() {
        let workspace = Workspace::of(&[
            (
                "crates/a/src/lib.rs",
                "pub struct Held;\nstruct Own;\npub enum Excepted {}",
            ),
            (
                "crates/b/src/lib.rs",
                "\npub trait Held {}\nstruct Own;\npub struct Excepted;\n#[cfg(test)]\nmod tests {\npub struct Held; }",
            ),
            ("crates/b/tests/c.rs", "pub struct Held;"),
        ]);
        let lists = Lists::of("types = { Excepted = \"a reason\" }");
        let found = check(&workspace, &lists);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]
                .what
                .ends_with("2 times: crates/a/src/lib.rs:1, crates/b/src/lib.rs:2"),
            "{found:?}"
        );
        let lists =
            Lists::of("types = { Excepted = \"a reason\", Held = \"another\", Gone = \"none\" }");
        assert_eq!(
            check(&workspace, &lists)[0].what,
            "type Gone is no longer declared twice"
        );
    }
}
