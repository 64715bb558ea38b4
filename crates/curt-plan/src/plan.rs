//! What follows from a workload.

use serde::Serialize;

use crate::configuration;
use crate::costs::Costs;
use crate::key_space::{ALPHABETS, KeyChoice};
use crate::workload::Workload;

const DAY: f64 = 86_400.0;
/// A twelfth of a year of 365.25 days.
const MONTH: f64 = DAY * 365.25 / 12.0;
/// Of a machine's processors and disk, what a plan counts on: the rest is for repairs, backups and bad days.
const USABLE: f64 = 0.5;
/// The head of a redirect's response beside its target.
const RESPONSE_HEAD_BYTES: f64 = 250.0;
/// A request with the headers of a browser.
const REQUEST_BYTES: f64 = 700.0;
/// Nobody has fewer of anything that must not fail.
const SPARE: f64 = 1.0;

/// Everything that a workload needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityPlan {
    pub workload: Workload,
    pub rates: Rates,
    pub storage: Storage,
    pub bandwidth: Bandwidth,
    /// One for each alphabet; the first is what the configuration has.
    pub keys: Vec<KeyChoice>,
    pub machines: Machines,
    /// Settings to start from, as a file.
    pub configuration: String,
    pub costs: Costs,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    pub writes_per_second: f64,
    pub writes_at_peak: f64,
    pub reads_per_second: f64,
    pub reads_at_peak: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Storage {
    pub links: f64,
    pub bytes_per_link: f64,
    pub bytes_per_month: f64,
    pub link_bytes: f64,
    pub clicks: f64,
    pub click_bytes: f64,
    /// Keys alone, as text.
    pub key_bytes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bandwidth {
    /// Bytes of links that come in by creates.
    pub incoming_bytes_per_second: f64,
    /// Targets that go out by redirects, as the documents count.
    pub outgoing_bytes_per_second: f64,
    /// With the heads of requests and responses, at the peak.
    pub wire_incoming_at_peak: f64,
    pub wire_outgoing_at_peak: f64,
}

/// One kind of machine: what asks for how many.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    pub needed: f64,
    pub per_machine: f64,
    pub machines: f64,
}

impl Capacity {
    fn new(needed: f64, per_machine: f64) -> Self {
        Self {
            needed,
            per_machine,
            machines: (needed / per_machine).ceil().max(1.0),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Machines {
    /// Nodes of the links database by disk.
    pub shards_by_disk: Capacity,
    /// And by creates at the peak.
    pub shards_by_writes: Capacity,
    pub shards: f64,
    /// Memory for the cached share of the links, and servers that hold it.
    pub cache: Capacity,
    /// As the documents count: the cached share of the bytes on disk.
    pub cache_as_stored: Capacity,
    /// Servers that redirect and count clicks, by processor time; one more than needed.
    pub servers: Capacity,
    /// Whether one machine holds all of it: links, memory and processors.
    pub fits_one: bool,
}

impl CapacityPlan {
    /// Plans for a workload that was checked.
    #[must_use]
    pub fn new(workload: Workload, costs: Costs) -> Self {
        let rates = Rates::new(&workload);
        let storage = Storage::new(&workload, &costs);
        let keys: Vec<KeyChoice> = [ALPHABETS[1], ALPHABETS[0], ALPHABETS[2]]
            .into_iter()
            .map(|alphabet| KeyChoice::shortest(alphabet, storage.links, workload.guess_odds))
            .collect();
        let length = keys.first().map_or(7, |choice| choice.length);
        let storage = Storage {
            key_bytes: storage.links * f64::from(length),
            ..storage
        };
        let machines = Machines::new(&workload, &rates, &storage, &costs);
        let configuration = configuration::write(&workload, &storage, &machines, length, &costs);
        Self {
            bandwidth: Bandwidth::new(&rates, &storage),
            workload,
            rates,
            storage,
            keys,
            machines,
            configuration,
            costs,
        }
    }
}

impl Rates {
    fn new(workload: &Workload) -> Self {
        let writes = workload.writes_per_month / MONTH;
        let reads = writes * workload.reads_per_write;
        Self {
            writes_per_second: writes,
            writes_at_peak: writes * workload.peak,
            reads_per_second: reads,
            reads_at_peak: reads * workload.peak,
        }
    }
}

impl Storage {
    fn new(workload: &Workload, costs: &Costs) -> Self {
        let bytes_per_link = workload.bytes_per_link.unwrap_or(costs.link_bytes);
        let links = workload.writes_per_month * 12.0 * workload.years;
        let clicks = links * workload.reads_per_write;
        Self {
            links,
            bytes_per_link,
            bytes_per_month: workload.writes_per_month * bytes_per_link,
            link_bytes: links * bytes_per_link,
            clicks,
            click_bytes: clicks * costs.click_bytes,
            key_bytes: 0.0,
        }
    }
}

impl Bandwidth {
    fn new(rates: &Rates, storage: &Storage) -> Self {
        let bytes = storage.bytes_per_link;
        Self {
            incoming_bytes_per_second: rates.writes_per_second * bytes,
            outgoing_bytes_per_second: rates.reads_per_second * bytes,
            wire_incoming_at_peak: rates.writes_at_peak * (bytes + REQUEST_BYTES)
                + rates.reads_at_peak * REQUEST_BYTES,
            wire_outgoing_at_peak: (rates.reads_at_peak + rates.writes_at_peak)
                * (bytes + RESPONSE_HEAD_BYTES),
        }
    }
}

impl Machines {
    fn new(workload: &Workload, rates: &Rates, storage: &Storage, costs: &Costs) -> Self {
        let by_disk = Capacity::new(storage.link_bytes, workload.disk_bytes * USABLE);
        let by_writes = Capacity::new(rates.writes_at_peak, costs.creates_per_second * USABLE);
        let cached = storage.links * workload.cached_share;
        // A machine's processors in microseconds of each second.
        let micros = workload.cores * USABLE * 1e6;
        let needed = rates.reads_at_peak * costs.redirect_micros
            + rates.writes_at_peak * costs.create_micros;
        let cache = Capacity::new(cached * costs.cached_link_bytes, workload.cache_bytes);
        let busy = Capacity::new(needed, micros);
        let shards = by_disk.machines.max(by_writes.machines);
        let fits_one = shards <= 1.0 && busy.machines <= 1.0 && cache.machines <= 1.0;
        let spare = if fits_one { 0.0 } else { SPARE };
        Self {
            shards_by_disk: by_disk,
            shards_by_writes: by_writes,
            shards,
            cache,
            cache_as_stored: Capacity::new(
                storage.link_bytes * workload.cached_share,
                workload.cache_bytes,
            ),
            servers: Capacity {
                machines: busy.machines + spare,
                ..busy
            },
            fits_one,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        Costs {
            date: "2026-01-01".to_owned(),
            machine: "a machine".to_owned(),
            versions: "curt 0.1.0".to_owned(),
            redirect_micros: 10.0,
            create_micros: 60.0,
            creates_per_second: 20_000.0,
            link_bytes: 160.0,
            cached_link_bytes: 180.0,
            click_bytes: 28.0,
        }
    }

    fn plan(change: impl FnOnce(&mut Workload)) -> CapacityPlan {
        let mut workload = Workload::default();
        change(&mut workload);
        CapacityPlan::new(workload, costs())
    }

    #[test]
    fn a_small_installation_is_one_machine() {
        let plan = plan(|_| {});
        assert!(plan.machines.fits_one);
        assert_eq!(plan.machines.servers.machines, 1.0);
        assert_eq!(plan.storage.links, 60e6);
        assert_eq!(plan.storage.link_bytes, 60e6 * 160.0);
        assert!(plan.configuration.contains("sqlite:"));
    }

    #[test]
    fn what_does_not_fit_is_spread() {
        let big = plan(|workload| {
            workload.writes_per_month = 2.7e9;
            workload.years = 10.0;
            workload.bytes_per_link = Some(2_000.0);
        });
        let machines = &big.machines;
        assert!(!machines.fits_one);
        assert_eq!(
            machines.shards_by_disk.machines,
            (2.7e9 * 120.0 * 2e3 / 1e12_f64).ceil()
        );
        assert_eq!(machines.shards, machines.shards_by_disk.machines);
        let busy = big.rates.reads_at_peak * 10.0 + big.rates.writes_at_peak * 60.0;
        assert_eq!(machines.servers.machines, (busy / 2e6).ceil() + 1.0);
    }

    #[test]
    fn more_of_anything_never_needs_less() {
        let amounts = |plan: &CapacityPlan| {
            let machines = &plan.machines;
            let keys = f64::from(plan.keys[0].length);
            [
                machines.shards,
                machines.servers.machines,
                machines.cache.machines,
                keys,
            ]
        };
        for (field, least, most) in [
            ("writes_per_month", 1.0, 1e12),
            ("reads_per_write", 0.0, 1e6),
            ("years", 0.01, 1_000.0),
            ("bytes_per_link", 16.0, 1e6),
            ("cached_share", 0.0, 1.0),
            ("peak", 1.0, 1_000.0),
        ] {
            let mut before = [0.0; 4];
            for step in 0..=20 {
                let value = least + (most - least) * f64::from(step) / 20.0;
                let now = amounts(&plan(|workload| {
                    *workload.field_mut(field).unwrap() = value
                }));
                let grows = now.iter().zip(before).all(|(now, before)| *now >= before);
                assert!(grows, "{field} {value}: {before:?} {now:?}");
                before = now;
            }
        }
    }
}
