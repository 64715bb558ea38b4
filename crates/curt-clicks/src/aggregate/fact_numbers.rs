//! Numbers of what a click says, within one window.

use std::sync::Arc;

use curt_core::Dimension;

use crate::classify::{Agent, Referrer};

/// The numbers of what an agent says. While it is held here, no other can be at its address.
pub(super) struct AgentNumbers {
    pub(super) _held: Arc<Agent>,
    pub(super) browser: u32,
    pub(super) system: u32,
}

/// The same of a referrer.
pub(super) struct ReferrerNumbers {
    pub(super) _held: Arc<Referrer>,
    pub(super) host: u32,
    pub(super) group: u32,
}

/// The numbers of a click's values.
#[derive(Clone, Copy, Debug)]
pub(super) struct FactNumbers {
    pub(super) class: u32,
    pub(super) country: u32,
    pub(super) browser: u32,
    pub(super) system: u32,
    pub(super) device: u32,
    pub(super) referrer: u32,
    pub(super) language: u32,
    /// By [`Dimension::DETAILS`].
    pub(super) details: [Option<u32>; Dimension::DETAILS.len()],
}
