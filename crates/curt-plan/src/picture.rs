//! A plan as a picture: how much of each kind of machine there is, and what flows between them.

use serde::Serialize;

use crate::figure::{bytes, count, odds, rate};
use crate::plan::CapacityPlan;

/// Boxes that are drawn one by one; more are told by a number.
const DRAWN_MAX: f64 = 8.0;

/// What a picture shows, from left to right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    pub stages: Vec<PictureStage>,
}

/// One kind of machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PictureStage {
    pub name: &'static str,
    /// How many, as people read it.
    pub machines: String,
    /// Boxes to draw.
    pub boxes: usize,
    /// What each holds or does.
    pub about: String,
    /// What comes to it from the stage before.
    pub inflow: String,
}

impl Picture {
    #[must_use]
    pub fn new(plan: &CapacityPlan) -> Self {
        let machines = &plan.machines;
        let servers = PictureStage {
            name: "servers",
            machines: count(machines.servers.machines),
            boxes: boxes(machines.servers.machines),
            about: format!("{} cores each", count(plan.workload.cores)),
            inflow: format!("{} clicks", rate(plan.rates.reads_at_peak)),
        };
        let links = PictureStage {
            name: "links databases",
            machines: count(machines.shards),
            boxes: boxes(machines.shards),
            about: bytes(plan.storage.link_bytes),
            inflow: format!("{} new", rate(plan.rates.writes_at_peak)),
        };
        if machines.fits_one {
            return Self {
                stages: vec![servers, links],
            };
        }
        let cache = PictureStage {
            name: "cache servers",
            machines: count(machines.cache.machines),
            boxes: boxes(machines.cache.machines),
            about: bytes(machines.cache.needed),
            inflow: format!("{} of all links", odds(plan.workload.cached_share)),
        };
        Self {
            stages: vec![servers, cache, links],
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped first"
)]
fn boxes(machines: f64) -> usize {
    machines.clamp(1.0, DRAWN_MAX) as usize
}
