//! What every engine needs and none should do by itself: wrappers of a port that are the same port.

mod observed;

pub use observed::{ObservedLinks, PortErrors};
