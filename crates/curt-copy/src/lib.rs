//! Copies of whole stores, from any engine to any other.
//!
//! A copy reads the source in parts, puts each part into the destination, and notes there how far it has come
//! (`record.rs`), so that it goes on after a crash of anything. Imports decide item by item what is newer: a part that is
//! imported again changes nothing. In the end both stores are read whole and compared (`digest.rs`).
//!
//! A source that is in use remembers what changes meanwhile, and the copy follows it until the source takes no more
//! writes (`links.rs`).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), warn(clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod digest;
mod error;
mod links;
mod part;
mod record;
mod store;

pub use digest::{Comparison, Digest};
pub use error::{CopyError, Side};
pub use links::{LinkCopy, LinkCopyReport, LinkSide};
pub use part::{CopyProgress, CopySettings, CopyStage, PartReport};
pub use record::{CopyNotes, CopyPhase, CopyRecord, identity_by_note};
pub use store::{StoreCopy, copy_stream};
