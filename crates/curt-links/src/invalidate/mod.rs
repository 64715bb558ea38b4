//! Changes of links between processes: [`Publisher`] tells the others what this one has changed, [`follow`] drops the
//! copies of what others have changed.
//!
//! Both are hints. A message that is lost, or never sent, leaves copies that end by their age; a follower that may have
//! missed one drops all of its copies.

mod follower;
mod metrics;
mod publisher;
mod recent;

pub use follower::follow;
pub use metrics::InvalidationMetrics;
pub use publisher::{Publisher, PublisherSettings};
pub(crate) use recent::RecentChanges;

/// What is known about a write whose links are told to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// New links, or none: nobody has a copy of one, though perhaps a negative answer.
    Created,
    /// The links are at the revisions that are told, or beyond.
    Changed,
    /// It may yet happen.
    Unknown,
}
