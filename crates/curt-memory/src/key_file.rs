use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use curt_core::limits::KEY_BYTES_MAX;
use curt_core::ports::{KeyFile, KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{ErrorKind, Key, PortError, PortResult};

use super::{BACKEND, locked};

type Files = Arc<Mutex<BTreeMap<Box<str>, Published>>>;

#[derive(Debug, Default)]
pub struct MemoryKeyFile {
    files: Files,
}

#[derive(Debug)]
struct Published {
    layout: KeyFileLayout,
    keys: Vec<Key>,
}

/// A file that only its writer sees.
struct Writer {
    files: Files,
    name: Box<str>,
    layout: KeyFileLayout,
    keys: Vec<Key>,
}

impl MemoryKeyFile {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

fn invalid(op: &'static str, detail: String) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, op, detail)
}

fn already_published(op: &'static str, name: &str) -> PortError {
    invalid(op, format!("the key file {name:?} is published already"))
}

impl Published {
    fn stat(&self) -> KeyFileStat {
        KeyFileStat {
            layout: self.layout,
            keys: self.keys.len() as u64,
        }
    }
}

#[async_trait]
impl KeyFile for MemoryKeyFile {
    async fn create(
        &self,
        name: &str,
        layout: KeyFileLayout,
    ) -> PortResult<Box<dyn KeyFileWriter>> {
        const OP: &str = "start a key file";
        if !(1..=KEY_BYTES_MAX).contains(&layout.width) || layout.block_keys == 0 {
            return Err(invalid(OP, format!("{layout:?} cannot hold keys")));
        }
        if locked(&self.files).contains_key(name) {
            return Err(already_published(OP, name));
        }
        Ok(Box::new(Writer {
            files: Arc::clone(&self.files),
            name: name.into(),
            layout,
            keys: Vec::new(),
        }))
    }

    async fn stat(&self, name: &str) -> PortResult<Option<KeyFileStat>> {
        Ok(locked(&self.files).get(name).map(Published::stat))
    }

    async fn read(&self, name: &str, first: u64, count: usize) -> PortResult<Vec<Key>> {
        let files = locked(&self.files);
        let file = files
            .get(name)
            .ok_or_else(|| invalid("read keys", format!("there is no key file {name:?}")))?;
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        Ok(file.keys.iter().skip(first).take(count).cloned().collect())
    }

    async fn names(&self) -> PortResult<Vec<Box<str>>> {
        Ok(locked(&self.files).keys().cloned().collect())
    }
}

#[async_trait]
impl KeyFileWriter for Writer {
    async fn append(&mut self, keys: &[Key]) -> PortResult<()> {
        let width = self.layout.width;
        if let Some(odd) = keys.iter().find(|key| key.as_bytes().len() != width) {
            let detail = format!("the key {odd} is not {width} symbols wide");
            return Err(invalid("append keys", detail));
        }
        self.keys.extend_from_slice(keys);
        Ok(())
    }

    async fn publish(self: Box<Self>) -> PortResult<KeyFileStat> {
        let mut files = locked(&self.files);
        if files.contains_key(&self.name) {
            return Err(already_published("publish a key file", &self.name));
        }
        let file = Published {
            layout: self.layout,
            keys: self.keys,
        };
        let stat = file.stat();
        files.insert(self.name, file);
        Ok(stat)
    }
}
