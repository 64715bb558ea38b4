//! What the engines have in common: one implementation of the port over the few steps in which they differ.

use async_trait::async_trait;
use curt_core::ports::{KeyFile, KeyFileLayout, KeyFileStat, KeyFileWriter};
use curt_core::{Key, PortResult};

use crate::key_layout::{self, Checksums, Operation, Tally, checked_name};

/// A place for key files.
#[async_trait]
pub(crate) trait Engine: Send + Sync {
    /// Its name in errors.
    const NAME: &'static str;
    type Draft: Draft;
    type Published: Published;

    /// Starts a draft, unless the name is published, and removes drafts whose writer is gone.
    async fn start(&self, name: Box<str>, operation: Operation) -> PortResult<Self::Draft>;

    /// Opens a published file and checks its description. Absent: `None`.
    async fn open(
        &self,
        name: Box<str>,
        operation: Operation,
    ) -> PortResult<Option<Self::Published>>;

    /// Names of published files, in any order.
    async fn list(&self, operation: Operation) -> PortResult<Vec<Box<str>>>;
}

/// A file that only its writer knows. Dropped: it is removed.
#[async_trait]
pub(crate) trait Draft: Sized + Send + 'static {
    /// Appends bytes. A call that failed or was dropped half-way does not bring the draft back: what has been written
    /// is unknown then, and the file must be started anew.
    async fn write(self, bytes: Vec<u8>, operation: Operation) -> PortResult<Self>;

    /// Makes the file durable and visible in one step, with `checksums` to describe it.
    async fn publish(self, checksums: &Checksums, operation: Operation) -> PortResult<()>;
}

/// A published file whose description has been read and checked.
#[async_trait]
pub(crate) trait Published: Send {
    fn stat(&self) -> KeyFileStat;

    async fn read(self, first: u64, count: usize) -> PortResult<Vec<Key>>;
}

/// Key files on one engine.
#[derive(Clone, Debug)]
pub struct EngineKeyFile<E> {
    engine: E,
}

impl<E> EngineKeyFile<E> {
    pub(crate) fn new(engine: E) -> Self {
        Self { engine }
    }
}

fn operation<E: Engine>(name: &'static str) -> Operation {
    Operation {
        backend: E::NAME,
        name,
    }
}

#[async_trait]
impl<E: Engine> KeyFile for EngineKeyFile<E> {
    async fn create(
        &self,
        name: &str,
        layout: KeyFileLayout,
    ) -> PortResult<Box<dyn KeyFileWriter>> {
        let operation = operation::<E>("start a key file");
        let name = checked_name(name, operation)?;
        key_layout::check_layout(layout, operation)?;
        let draft = self.engine.start(name, operation).await?;
        Ok(Box::new(DraftWriter {
            backend: E::NAME,
            layout,
            tally: Tally::new(layout),
            draft: Some(draft),
        }))
    }

    async fn stat(&self, name: &str) -> PortResult<Option<KeyFileStat>> {
        let operation = operation::<E>("look at a key file");
        let name = checked_name(name, operation)?;
        let file = self.engine.open(name, operation).await?;
        Ok(file.map(|file| file.stat()))
    }

    async fn read(&self, name: &str, first: u64, count: usize) -> PortResult<Vec<Key>> {
        let operation = operation::<E>("read keys");
        let file = self.engine.open(checked_name(name, operation)?, operation);
        let file = file.await?.ok_or_else(|| operation.absent(name))?;
        file.read(first, count).await
    }

    async fn names(&self) -> PortResult<Vec<Box<str>>> {
        let mut names = self.engine.list(operation::<E>("list key files")).await?;
        names.sort();
        Ok(names)
    }
}

/// Writes keys and their checksums.
struct DraftWriter<D> {
    backend: &'static str,
    layout: KeyFileLayout,
    tally: Tally,
    /// Away while a call works on it, and after one that failed.
    draft: Option<D>,
}

impl<D> DraftWriter<D> {
    fn operation(&self, name: &'static str) -> Operation {
        Operation {
            backend: self.backend,
            name,
        }
    }

    fn take_draft(&mut self, operation: Operation) -> PortResult<D> {
        self.draft.take().ok_or_else(|| operation.half_written())
    }
}

#[async_trait]
impl<D: Draft> KeyFileWriter for DraftWriter<D> {
    async fn append(&mut self, keys: &[Key]) -> PortResult<()> {
        let operation = self.operation("append keys");
        // Before the draft is taken: keys of another width leave a file that can still be finished.
        let bytes = key_layout::join(keys, self.layout.width, operation)?;
        let draft = self.take_draft(operation)?;
        self.tally.add(&bytes);
        self.draft = Some(draft.write(bytes, operation).await?);
        Ok(())
    }

    async fn publish(mut self: Box<Self>) -> PortResult<KeyFileStat> {
        let operation = self.operation("publish a key file");
        let draft = self.take_draft(operation)?;
        let checksums = self.tally.checksums();
        draft.publish(&checksums, operation).await?;
        Ok(checksums.stat())
    }
}
