use crate::key::LinkId;

/// Where links are written, for a process that is in one of several regions.
pub trait LinkHomes: Send + Sync {
    /// Whether a link with this id is written in the region of this process; `true` where nothing is known of regions.
    fn is_home(&self, id: &LinkId) -> bool;
}
