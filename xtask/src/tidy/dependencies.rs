//! Libraries: licences, sources and bans of `deny.toml`, over what cargo resolves for this platform with every feature.
//! `cargo deny check` reads the same file and also asks for advisories, for which it needs the network.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Finding;
use crate::workspace::Workspace;

const FILE: &str = "deny.toml";
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Debug, Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    /// Libraries that may use it all the same.
    #[serde(default)]
    wrappers: Vec<String>,
    reason: String,
}

/// What `cargo metadata` says, as far as it is looked at.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Default, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

/// What a package uses, with the features that are on, by their ids.
#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

/// Asks cargo for all libraries of one platform: those of others are never fetched. A first build fetches them here.
pub(super) fn metadata(root: &Path) -> Result<Metadata> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let version = String::from_utf8_lossy(&version);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc -vV names no host")?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--all-features",
    ]);
    command.args(["--filter-platform", host]).current_dir(root);
    serde_json::from_slice(&output(&mut command)?).context("read cargo metadata")
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .output()
        .with_context(|| format!("run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {errors}");
    Ok(output.stdout)
}

impl Metadata {
    /// Whether only these use the package.
    fn is_wrapped(&self, id: &str, wrappers: &[String]) -> bool {
        let users = self.resolve.nodes.iter();
        let mut users = users.filter(|node| node.dependencies.iter().any(|used| used == id));
        let is_wrapper = |user: &Node| {
            let mut named = self.packages.iter().filter(|package| package.id == user.id);
            named.all(|package| wrappers.contains(&package.name))
        };
        !wrappers.is_empty() && users.all(is_wrapper)
    }
}

pub(super) fn check(workspace: &Workspace, metadata: &Metadata) -> Result<Vec<Finding>> {
    let text = workspace
        .texts
        .get(FILE)
        .with_context(|| format!("{FILE} is missing"))?;
    let deny: Deny = toml::from_str(text).with_context(|| format!("read {FILE}"))?;
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for package in &metadata.packages {
        *versions.entry(&package.name).or_default() += 1;
        let Package {
            id,
            name,
            version,
            license,
            source,
        } = package;
        // The workspace's own crates have no source.
        let Some(source) = source else { continue };
        let mut find = |what: String, mend: &str| {
            findings.push(Finding::new(
                "Cargo.lock",
                1,
                format!("{name} {version}: {what}"),
                mend,
            ))
        };
        if source != CRATES_IO {
            find(
                format!("comes from {source}"),
                "libraries come from crates.io",
            );
        }
        let license = license.as_deref().unwrap_or("no licence");
        if !is_allowed(license, &deny.licenses.allow) {
            find(
                format!("{license} is not allowed"),
                "use another library, or allow the licence in deny.toml",
            );
        }
        let ban = deny.bans.deny.iter().find(|ban| ban.name == *name);
        if let Some(ban) = ban.filter(|ban| !metadata.is_wrapped(id, &ban.wrappers)) {
            find("is banned".to_owned(), &ban.reason);
        }
    }
    let repeated = versions.values().filter(|versions| **versions > 1).count();
    println!("libraries in several versions: {repeated} (cargo tree --duplicates)");
    Ok(findings)
}

/// Whether a licence expression can be met with the allowed licences alone. `OR` leaves the choice, `AND` does not.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ")
        .replace(" WITH ", "+WITH+");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut is_met = all_of(rest, allowed);
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        is_met |= all_of(rest, allowed);
    }
    is_met
}

fn all_of(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut is_met = one(rest, allowed);
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        is_met &= one(rest, allowed);
    }
    is_met
}

fn one(rest: &mut &[&str], allowed: &[String]) -> bool {
    let Some((first, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    if *first != "(" {
        return allowed
            .iter()
            .any(|license| license.replace(" WITH ", "+WITH+") == *first);
    }
    let is_met = any_of(rest, allowed);
    *rest = rest.strip_prefix(&[")"]).unwrap_or(&[]);
    is_met
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_by_allowed_licences_alone() {
        let allowed = [
            "MIT".to_owned(),
            "Apache-2.0 WITH LLVM-exception".to_owned(),
            "ISC".to_owned(),
        ];
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "GPL-3.0/MIT",
            "MIT AND (ISC OR GPL-3.0)",
            "Apache-2.0 WITH LLVM-exception AND ISC",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in [
            "GPL-3.0",
            "",
            "MIT AND GPL-3.0",
            "Apache-2.0",
            "(MIT OR ISC) AND GPL-3.0",
            "no licence",
            "MIT)",
        ] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn licences_sources_and_bans_are_found() {
        let deny = "[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [{ crate = \"openssl-sys\", reason = \"one TLS stack\" }]\n";
        let workspace = Workspace::of(&[(FILE, deny)]);
        let package = |name: &str, license: &str, source: Option<&str>| Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some(license.to_owned()),
            source: source.map(str::to_owned),
        };
        let packages = vec![
            package("curt", "none", None),
            package("good", "MIT", Some(CRATES_IO)),
            package("copyleft", "GPL-3.0", Some(CRATES_IO)),
            package("fork", "MIT", Some("git+https://example.com/fork")),
            package("openssl-sys", "MIT", Some(CRATES_IO)),
        ];
        let resolve = Resolve::default();
        let found = check(&workspace, &Metadata { packages, resolve }).unwrap();
        let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            what,
            [
                "copyleft 1.0.0: GPL-3.0 is not allowed",
                "fork 1.0.0: comes from git+https://example.com/fork",
                "openssl-sys 1.0.0: is banned",
            ]
        );
    }

    #[test]
    fn a_banned_library_is_for_its_wrappers_alone() {
        let deny = "[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [{ crate = \"bad\", wrappers = [\"wrapper\"], reason = \"no\" }]\n";
        let workspace = Workspace::of(&[(FILE, deny)]);
        let package = |name: &str| Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            source: Some(CRATES_IO.to_owned()),
        };
        let uses_bad = |name: &str| Node {
            id: name.to_owned(),
            dependencies: vec!["bad".to_owned()],
        };
        for (users, found) in [(&["wrapper"][..], 0), (&["wrapper", "other"], 1)] {
            let packages = ["bad", "wrapper", "other"].map(package).into();
            let nodes = users.iter().map(|user| uses_bad(user)).collect();
            let resolve = Resolve { nodes };
            let findings = check(&workspace, &Metadata { packages, resolve }).unwrap();
            assert_eq!(findings.len(), found, "{users:?}");
        }
    }
}
