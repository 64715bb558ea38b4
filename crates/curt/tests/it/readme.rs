//! Plays the first chapter of the README word for word, as a reader would: in a new folder, with two terminals.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::alone::Company;

const CHAPTER: &str = "## Your first link\n";
/// What the reader puts the printed key in place of.
const PASTED: &str = "curt_…";
const ADDRESS: &str = "127.0.0.1:8080";

/// A command, and what the README says that it prints; `…` stands for anything.
#[derive(Debug)]
struct Step {
    command: String,
    printed: Vec<String>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of the first chapter. Where a block has prompts, the other lines are what is printed.
fn first_chapter() -> Vec<Vec<Step>> {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let (_, chapter) = readme.split_once(CHAPTER).unwrap();
    let chapter = chapter.split("\n## ").next().unwrap();
    let blocks = chapter.split("```sh\n").skip(1);
    blocks
        .map(|block| steps(block.split("```").next().unwrap()))
        .collect()
}

fn steps(block: &str) -> Vec<Step> {
    let has_prompts = block.lines().any(|line| line.starts_with("$ "));
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        let command = match has_prompts {
            true => line.strip_prefix("$ "),
            false => Some(line),
        };
        match (command, steps.last_mut()) {
            (Some(command), _) => steps.push(Step {
                command: command.to_owned(),
                printed: Vec::new(),
            }),
            (None, Some(step)) if step.command.ends_with('\\') => {
                step.command.push('\n');
                step.command.push_str(line);
            }
            (None, Some(step)) => step.printed.push(line.to_owned()),
            (None, None) => panic!("{line:?} is printed by no command"),
        }
    }
    steps
}

/// Whether the text is as the pattern says, in which `…` stands for anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, pattern)) = pattern.split_once('…') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = pattern.rsplit_once('…').unwrap_or(("", pattern));
    for part in middle.split('…') {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A reader's machine: a home, a folder for links, and a terminal that finds what was installed.
struct Reader {
    folder: tempfile::TempDir,
    _company: Company,
}

impl Reader {
    fn new() -> Self {
        let company = Company::join();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("links")).unwrap();
        Self {
            folder,
            _company: company,
        }
    }

    fn prefix(&self) -> PathBuf {
        self.folder.path().join("prefix")
    }

    fn links(&self) -> PathBuf {
        self.folder.path().join("links")
    }

    fn terminal(&self, script: &str) -> Command {
        let path = format!(
            "{}/bin:/usr/local/bin:/usr/bin:/bin",
            self.prefix().display()
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", script])
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .current_dir(self.links())
            .stdin(Stdio::null());
        bash
    }

    /// Runs `make` in the repository, on the binary under test instead of a new one.
    fn install(&self, command: &str) {
        let binary = env!("CARGO_BIN_EXE_curt");
        let prefix = self.prefix().display().to_string();
        let mut make = self.terminal(command);
        make.current_dir(repository())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env(
                "MAKEFLAGS",
                format!("CARGO=true BINARY={binary} PREFIX={prefix}"),
            );
        let output = make.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command}: {output:?}");
        assert!(
            told.contains(&format!("installed {prefix}/bin/curt")),
            "{told}"
        );
        assert!(told.contains("not on your PATH"), "{told}");
    }

    fn serve(&self, command: &str) -> FirstStart {
        let log = self.folder.path().join("log");
        let mut server = self.terminal(command);
        let mut child = server
            .env("CURT_SERVER_LISTEN", "127.0.0.1:0")
            .env("CURT_SERVER_ADMIN_LISTEN", "127.0.0.1:0")
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut printed = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !printed
            .last()
            .is_some_and(|line: &String| line.starts_with("curt serves "))
        {
            match lines.next() {
                Some(line) => printed.push(line.unwrap()),
                None => {
                    let log = std::fs::read_to_string(&log);
                    panic!("the server ended: {printed:?} {log:?}");
                }
            }
        }
        FirstStart { child, printed }
    }

    /// Plays the rest in one terminal, so that what is exported stays.
    fn play(&self, steps: &[&Step], key: &str, address: &str) {
        let mut script = "fail() { cat \"printed.$1\" \"log.$1\" >&2; exit 1; }\n".to_owned();
        for (at, step) in steps.iter().enumerate() {
            let command = step.command.replace(PASTED, key).replace(ADDRESS, address);
            script += &format!("{{ {command}\n}} >printed.{at} 2>log.{at} || fail {at}\n");
        }
        let mut bash = self.terminal(&script);
        let output = bash.env("CURT_URL", format!("http://{address}")).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}\n{script}");
        for (at, step) in steps.iter().enumerate() {
            let printed = std::fs::read_to_string(self.links().join(format!("printed.{at}")));
            let printed = printed.unwrap();
            let expected: Vec<_> = step
                .printed
                .iter()
                .map(|line| line.replace(ADDRESS, address))
                .collect();
            let printed: Vec<_> = printed.lines().collect();
            let is_same = printed.len() == expected.len()
                && expected
                    .iter()
                    .zip(&printed)
                    .all(|(like, line)| is_like(like, line));
            assert!(
                is_same,
                "{}\nprinted {printed:?}, not {expected:?}",
                step.command
            );
        }
    }
}

/// A server that was started for the first time, and what it printed beside its log.
struct FirstStart {
    child: Child,
    printed: Vec<String>,
}

impl FirstStart {
    /// The key, the set-up link and the address, which come in this order, and the address last.
    fn told(&self) -> [String; 3] {
        let place = |is_it: &dyn Fn(&str) -> bool| {
            let found = self.printed.iter().position(|line| is_it(line.trim()));
            found.unwrap_or_else(|| panic!("not printed: {:#?}", self.printed))
        };
        let places = [
            place(&|line| line.starts_with("curt_") && !line.contains(' ')),
            place(&|line| line.starts_with("http://") && line.contains("/setup?token=")),
            place(&|line| line.starts_with("curt serves http://")),
        ];
        assert!(places.is_sorted(), "{:#?}", self.printed);
        assert_eq!(places[2], self.printed.len() - 1, "{:#?}", self.printed);
        places.map(|place| self.printed[place].trim().to_owned())
    }
}

impl Drop for FirstStart {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

#[test]
fn the_first_chapter_of_the_readme_works_word_for_word() {
    let reader = Reader::new();
    let blocks = first_chapter();
    let [install, start, rest @ ..] = blocks.as_slice() else {
        panic!("{blocks:?}");
    };
    let [install] = install.as_slice() else {
        panic!("{install:?}");
    };
    assert!(install.command.starts_with("make "), "{install:?}");
    reader.install(&install.command);
    let [start] = start.as_slice() else {
        panic!("{start:?}");
    };
    let server = reader.serve(&start.command);
    let [key, setup, address] = server.told();
    let address = address.strip_prefix("curt serves http://").unwrap();
    assert!(setup.starts_with(&format!("http://{address}/setup?token=")));
    let steps: Vec<&Step> = rest.iter().flatten().collect();
    assert!(steps.len() >= 5, "{steps:?}");
    reader.play(&steps, &key, address);
    assert!(reader.links().join("data").is_dir(), "as the text says");
    let defaults = std::fs::read_to_string(repository().join("crates/curt/config/default.toml"));
    assert!(
        defaults.unwrap().contains("default_expiry = \"730d\""),
        "two years"
    );
}

#[test]
fn the_patterns_of_the_readme_match_what_they_say() {
    for (pattern, text, matches) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a…", "ab", true),
        ("a…c", "abc", true),
        ("a…c", "abcc", true),
        ("a…c", "abd", false),
        ("a…b…c", "axbxc", true),
        ("a…b…c", "axxc", false),
        ("{\"key\":\"…\",…}", "{\"key\":\"x\",\"y\":1}", true),
    ] {
        assert_eq!(is_like(pattern, text), matches, "{pattern} {text}");
    }
}
