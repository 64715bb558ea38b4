//! Calls that have one home: tasks are spawned by the supervisor, time is asked of the clock. Casts that may cut numbers
//! off have none. Tests are free.

use super::lists::{Call, Lists};
use super::{Finding, ratchet};
use crate::workspace::{Source, Workspace};

pub(super) fn check(workspace: &Workspace, lists: &Lists) -> Vec<Finding> {
    lists
        .calls
        .iter()
        .flat_map(|call| check_call(workspace, call))
        .collect()
}

fn check_call(workspace: &Workspace, call: &Call) -> Vec<Finding> {
    let spaced = call.path.replace("::", " : : ");
    let path: Vec<&str> = spaced.split(' ').collect();
    let home: Vec<&str> = call.home.split(' ').collect();
    let mut places = Vec::new();
    for (file, source) in workspace
        .product()
        .filter(|(_, source)| lines_of(source, &home).is_empty())
    {
        for line in lines_of(source, &path) {
            places.push(Finding::new(
                file,
                line,
                format!("has `{}`", call.path),
                &call.mend,
            ));
        }
    }
    ratchet(&format!("call {}", call.path), call.left, places)
}

/// Returns the lines of product code at which the tokens stand in a row.
fn lines_of(source: &Source, wanted: &[&str]) -> Vec<usize> {
    let tokens = source.layers.tokens();
    let product = tokens
        .windows(wanted.len())
        .filter(|found| found[0].line <= source.product_lines);
    let places = product.filter(|found| {
        found
            .iter()
            .zip(wanted)
            .all(|(token, part)| token.text == *part)
    });
    places.map(|found| found[0].line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_away_from_home_is_found() {
        let workspace = Workspace::of(&[
            (
                "crates/a/src/supervisor.rs",
                "pub struct Supervisor;\nfn a() { tokio::spawn(b()); }",
            ),
            (
                "crates/a/src/lib.rs",
                "fn b() { thread::spawn(c); }\nfn c() { tokio::spawn(d()); }\n#[cfg(test)]\nmod tests {\nfn e() { tokio::spawn(f()); } }",
            ),
            ("crates/a/tests/it.rs", "fn g() { tokio::spawn(h()); }"),
        ]);
        let lists = |left: usize| {
            Lists::of(&format!(
                "call = [{{ path = \"tokio::spawn\", home = \"struct Supervisor\", left = {left}, mend = \"x\" }}]"
            ))
        };
        let found = check(&workspace, &lists(0));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].file.as_str(), found[0].line),
            ("crates/a/src/lib.rs", 2)
        );
        assert_eq!(check(&workspace, &lists(1)), []);
        let workspace = Workspace::of(&[(
            "crates/a/src/lib.rs",
            "use a as u8;\nlet b = c as u32 as u64;",
        )]);
        let lists =
            Lists::of("call = [{ path = \"as u32\", home = \"\", left = 0, mend = \"x\" }]");
        assert_eq!(check(&workspace, &lists)[0].line, 2);
    }
}
