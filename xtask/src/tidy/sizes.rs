//! Sizes: lines of a file and of a function, columns of a comment.

use super::lists::Lists;
use super::{Finding, ratchet};
use crate::lex::Token;
use crate::workspace::{Source, Workspace};

pub(super) fn check(workspace: &Workspace, lists: &Lists) -> Vec<Finding> {
    let sizes = &lists.sizes;
    let (mut files, mut functions, mut comments) = (Vec::new(), Vec::new(), Vec::new());
    for (path, source) in &workspace.sources {
        let lines = source.text.lines().count();
        if lines > sizes.file_lines {
            let what = format!("file of {lines} lines, more than {}", sizes.file_lines);
            files.push(Finding::new(path, 1, what, "split it by what it does"));
        }
        for (name, first, last) in function_ranges(&source.layers.tokens()) {
            let lines = last - first + 1;
            if lines > sizes.function_lines {
                let what = format!(
                    "function {name} of {lines} lines, more than {}",
                    sizes.function_lines
                );
                functions.push(Finding::new(
                    path,
                    first,
                    what,
                    "take out a step and name it",
                ));
            }
        }
        for (line, columns) in comment_widths(source) {
            if columns > sizes.comment_columns {
                let what = format!(
                    "comment of {columns} columns, more than {}",
                    sizes.comment_columns
                );
                comments.push(Finding::new(path, line, what, "wrap it"));
            }
        }
    }
    let mut findings = ratchet("sizes.long_files", sizes.long_files, files);
    findings.extend(ratchet(
        "sizes.long_functions",
        sizes.long_functions,
        functions,
    ));
    findings.extend(ratchet(
        "sizes.wide_comments",
        sizes.wide_comments,
        comments,
    ));
    findings
}

/// Returns name, first and last line of each function that has a body.
fn function_ranges<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, usize, usize)> {
    let mut functions = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let name = tokens.get(at + 1).map_or("", |name| name.text);
        if token.text != "fn" || name == "(" {
            continue; // `fn(A) -> B` is a type
        }
        let (mut depth, mut has_body) = (0_usize, false);
        for token in &tokens[at + 1..] {
            match token.text {
                ";" if depth == 0 => break,
                "{" | "(" | "[" => {
                    has_body |= token.text == "{" && depth == 0;
                    depth += 1;
                }
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if has_body && depth == 0 {
                functions.push((name, tokens[at].line, token.line));
                break;
            }
        }
    }
    functions
}

/// Returns the width of each line that has a comment.
fn comment_widths(source: &Source) -> Vec<(usize, usize)> {
    let lines = source
        .text
        .lines()
        .zip(source.layers.comments.lines())
        .enumerate();
    lines
        .filter(|(_, (_, comment))| !comment.trim().is_empty())
        .map(|(index, (line, _))| (index + 1, line.chars().count()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let workspace = Workspace::of(&[("crates/a/src/lib.rs", text)]);
        let findings = check(&workspace, &Lists::of(""));
        findings
            .into_iter()
            .map(|finding| (finding.line, finding.what))
            .collect()
    }

    #[test]
    fn what_is_too_long_is_found() {
        assert_eq!(found("1\n2\n3\n4\n"), []);
        assert_eq!(
            found("1\n2\n3\n4\n5\n")[0].1,
            "file of 5 lines, more than 4 (1 of these, 0 excepted)"
        );
        assert_eq!(found("\nfn a(b: [u8; 4]) {\n}\n"), []);
        assert_eq!(
            found("fn a(b: fn(C) -> [u8; 4]) -> D {\n;\n;\n}\n"),
            [(
                1,
                "function a of 4 lines, more than 3 (1 of these, 0 excepted)".to_owned()
            )]
        );
        assert_eq!(found("trait A {\nfn b();\nfn c();\n}\n"), []);
        assert_eq!(found("// ä3456789012345678\n"), []);
        assert_eq!(
            found("\nlet a = 1; // 6789012\n"),
            [(
                2,
                "comment of 21 columns, more than 20 (1 of these, 0 excepted)".to_owned()
            )]
        );
    }
}
