use curt_core::ports::LinkChange;
use curt_core::{LinkId, Revision};
use quick_cache::sync::Cache;

/// Changes that are remembered.
const CHANGES_MAX: usize = 65_536;

/// The revisions that changed links have at least. Revisions only grow, so that nothing here becomes wrong; what is pushed
/// out is known no more.
pub(crate) struct RecentChanges(Cache<LinkId, Revision>);

impl RecentChanges {
    pub(crate) fn note(&self, changes: &[LinkChange]) {
        for LinkChange { id, revision } in changes {
            let known = self.0.get(id).unwrap_or_default();
            self.0.insert(id.clone(), known.max(*revision));
        }
    }

    /// Whether a newer revision is known.
    pub(crate) fn is_outdated(&self, id: &LinkId, revision: Revision) -> bool {
        self.0.get(id).is_some_and(|known| revision < known)
    }
}

impl Default for RecentChanges {
    fn default() -> Self {
        Self(Cache::new(CHANGES_MAX))
    }
}
