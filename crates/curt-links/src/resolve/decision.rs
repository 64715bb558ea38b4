//! What becomes of a loaded link: the answer, and what the caches remember of it.

use curt_core::{GoneCause, ServedLink};

use super::Resolution;
use super::negative_cache::NegativeAnswer;

/// What was decided about a loaded link.
pub(super) struct LoadDecision {
    pub(super) resolution: Resolution,
    pub(super) fill: CacheFill,
}

/// What a load leaves in the caches, in place of what was there.
pub(super) enum CacheFill {
    Live(ServedLink),
    Negative(NegativeAnswer),
    Nothing,
}

pub(super) fn negative(resolution: Resolution, answer: NegativeAnswer) -> LoadDecision {
    LoadDecision {
        resolution,
        fill: CacheFill::Negative(answer),
    }
}

pub(super) fn gone(cause: GoneCause) -> LoadDecision {
    negative(Resolution::Gone(cause), NegativeAnswer::Gone(cause))
}

pub(super) fn uncached(resolution: Resolution) -> LoadDecision {
    LoadDecision {
        resolution,
        fill: CacheFill::Nothing,
    }
}
