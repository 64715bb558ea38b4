use crate::key::LinkId;

/// Where links are written, for a process with several databases.
pub trait LinkHomes: Send + Sync {
    /// Whether a link with this id is written in the region of this process, at a node that takes writes as far as is known;
    /// `true` where nothing is known of either, or no id would be better.
    fn is_home(&self, id: &LinkId) -> bool;
}
