//! By what a spool is known to those who remember how far they have read it. Several servers, each with a spool of its
//! own, may be counted in one database; and a folder that was lost and made anew is another spool.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use curt_core::names::event;
use curt_core::ports::StreamId;

const NAME: &str = "id";
const DRAFT: &str = "id.new";

/// The spool's id, made at its first opening. Whoever calls holds the spool's lock.
///
/// One that is damaged or cannot be written is no reason to stop the server: the spool goes under another name then, and
/// only what was counted in the very moment of a crash, and not yet wiped here, is counted twice.
pub(super) fn of(folder: &Path) -> StreamId {
    read(folder).unwrap_or_else(|| {
        let id = StreamId(rand::random());
        if let Err(error) = write(folder, id) {
            tracing::warn!(event = event::SPOOL_UNNAMED, %error, "the spool cannot keep its id");
        }
        id
    })
}

fn read(folder: &Path) -> Option<StreamId> {
    let text = fs::read_to_string(folder.join(NAME)).ok()?;
    u64::from_str_radix(text.trim_end(), 16).ok().map(StreamId)
}

/// Whole or not at all: a cut id would be another one.
fn write(folder: &Path, id: StreamId) -> io::Result<()> {
    let draft = folder.join(DRAFT);
    let mut file = File::create(&draft)?;
    writeln!(file, "{:016x}", id.0)?;
    file.sync_all()?;
    fs::rename(&draft, folder.join(NAME))?;
    File::open(folder)?.sync_all()
}
