//! What is known about records that nobody can read, for a person to look at: one line of JSON each.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use curt_core::names::event;
use data_encoding::HEXLOWER;

use super::settings::SpoolSettings;

/// Bytes of a record that are kept: more than a whole click.
const LETTER_BYTES_MAX: usize = 2_048;

/// A file that grows to its bound and no further: the first letters tell what went wrong.
#[derive(Debug)]
pub(super) struct DeadLetterFile {
    path: PathBuf,
    bytes_max: u64,
    /// Whether the records themselves are kept, in which a visitor's address stands.
    pub(super) keeps_records: bool,
    file: Mutex<Option<File>>,
}

impl DeadLetterFile {
    pub(super) fn new(path: PathBuf, settings: &SpoolSettings) -> Self {
        Self {
            path,
            bytes_max: settings.dead_letter_bytes,
            keeps_records: settings.keeps_dead_records,
            file: Mutex::new(None),
        }
    }

    /// Never fails the caller: a letter that cannot be kept is still counted and logged.
    pub(super) fn keep(&self, partition: u32, offset: u64, reason: &'static str, bytes: &[u8]) {
        tracing::warn!(
            event = event::CLICK_DEAD_LETTERED,
            partition,
            offset,
            reason,
            "click record unreadable, see dead letters"
        );
        let mut line = format!(
            "{{\"partition\":{partition},\"offset\":{offset},\"reason\":\"{reason}\",\"length\":{},\"crc32\":\"{:08x}\"",
            bytes.len(),
            crc32fast::hash(bytes)
        );
        if self.keeps_records {
            let kept = &bytes[..bytes.len().min(LETTER_BYTES_MAX)];
            line += &format!(",\"bytes\":\"{}\"", HEXLOWER.encode(kept));
        }
        line += "}\n";
        if let Err(error) = self.write(&line) {
            tracing::warn!(%error, path = %self.path.display(), "a dead letter is not kept");
        }
    }

    fn write(&self, line: &str) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *file {
            Some(file) => file,
            closed => closed.insert(
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&self.path)?,
            ),
        };
        if file.metadata()?.len() + line.len() as u64 > self.bytes_max {
            return Ok(());
        }
        file.write_all(line.as_bytes())
    }
}
