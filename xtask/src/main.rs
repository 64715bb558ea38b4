//! Tasks of the repository: `cargo xtask tidy` checks rules that the compiler does not know, `cargo xtask lines` counts
//! product code.

#![forbid(unsafe_code)]

mod lex;
mod lines;
mod tidy;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

const USAGE: &str = "usage: cargo xtask tidy | cargo xtask lines [ROOT]
  tidy   check the rules of xtask/tidy.toml; exits with 1 when one is broken
  lines  count lines of product code per crate, here or in another checkout";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(&here),
        ["lines"] => {
            print!("{}", lines::report(&Workspace::read(&here)?));
            Ok(ExitCode::SUCCESS)
        }
        ["lines", root] => {
            print!("{}", lines::report(&Workspace::read(Path::new(root))?));
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!(USAGE),
    }
}
