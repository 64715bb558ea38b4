//! The settings to start from.

use crate::costs::Costs;
use crate::figure::{bytes, count, odds};
use crate::plan::{Machines, Storage};
use crate::workload::Workload;

/// Links databases that a file names one by one; the rest is told.
const NAMED_MAX: usize = 4;
const CACHE_BYTES_MIN: f64 = 256.0 * 1_048_576.0;

/// Writes settings for one machine, or for as many as the plan has.
pub(crate) fn write(
    workload: &Workload,
    storage: &Storage,
    machines: &Machines,
    key_length: u32,
    costs: &Costs,
) -> String {
    let mut file = format!(
        "# {} links a month, {} clicks for each, {} years: {} links, {}.\n",
        count(workload.writes_per_month),
        count(workload.reads_per_write),
        workload.years,
        count(storage.links),
        bytes(storage.link_bytes),
    );
    match machines.fits_one {
        true => single(&mut file, storage, workload, costs),
        false => fleet(&mut file, machines, workload, storage),
    }
    file.push_str(&format!(
        "\n[keys]\n# {} of random keys are in use at the end, at most.\nalphabet = \"base62\"\nlength = {key_length}\n",
        odds(workload.guess_odds)
    ));
    file
}

fn single(file: &mut String, storage: &Storage, workload: &Workload, costs: &Costs) {
    file.push_str("# One machine holds all of it: the embedded default.\n\n[store]\nlinks = [\"sqlite:curt.db\"]\n");
    let cached = storage.links * workload.cached_share * costs.cached_link_bytes;
    file.push_str(&format!(
        "\n[cache]\n# {} of all links.\nbytes = \"{}MiB\"\n",
        odds(workload.cached_share),
        mebibytes(cached.max(CACHE_BYTES_MIN))
    ));
}

fn fleet(file: &mut String, machines: &Machines, workload: &Workload, storage: &Storage) {
    let servers = count(machines.servers.machines);
    file.push_str(&format!(
        "# {servers} servers behind a balancer, each with this file; {} links databases, {} cache servers.\n\n",
        count(machines.shards),
        count(machines.cache.machines),
    ));
    let links = list(machines.shards, |node| {
        format!("postgres://curt@links-{node}/curt")
    });
    let cache = list(machines.cache.machines, |node| {
        format!("memcached://cache-{node}:11211")
    });
    file.push_str(&format!(
        "[server]\npublic_url = \"https://go.example.com\"\nlisten = \"0.0.0.0:8080\"\n\n[store]\n\
         # {} in all; each holds {} at most.\nlinks = {links}\n\
         # {} of all links.\ncache = {cache}\n\
         invalidations = \"redis://redis:6379\"\nquotas = \"redis://redis:6379\"\nleases = \"redis://redis:6379\"\n\
         pool = [\"redis://redis:6379\"]\n",
        bytes(storage.link_bytes),
        bytes(machines.shards_by_disk.per_machine),
        odds(workload.cached_share),
    ));
    file.push_str("\n[links]\n# A node that joins takes its share of the links, and nothing else moves.\nplacement = \"ring\"\n");
    file.push_str(
        "\n[cache]\n# Of each server, looked at before the shared cache.\nbytes = \"1024MiB\"\n",
    );
}

/// The first addresses; a comment says how many more there are.
fn list(machines: f64, address: impl Fn(usize) -> String) -> String {
    let named: Vec<String> = (1..=NAMED_MAX)
        .take_while(|node| *node <= 1 || as_number(*node) <= machines)
        .map(|node| format!("\"{}\"", address(node)))
        .collect();
    let more = machines - as_number(named.len());
    let end = match more > 0.0 {
        true => format!(" # and {} more", count(more)),
        false => String::new(),
    };
    format!("[{}]{end}", named.join(", "))
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn as_number(node: usize) -> f64 {
    node as f64
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.0}", (bytes / 1_048_576.0).ceil())
}
