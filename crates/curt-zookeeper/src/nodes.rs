//! Names as parts of paths, and nodes below paths that may be missing.

use std::fmt::Write;

use zookeeper_client::{Client, CreateMode, Error, Stat};

use super::ZooKeeper;

/// A name as one part of a path. ZooKeeper refuses some characters and gives `/` and `.` a meaning; different names
/// have different parts.
pub(super) fn segment(name: &str) -> String {
    if name.is_empty() {
        return "%".into();
    }
    let mut segment = String::with_capacity(name.len());
    let is_dots = matches!(name, "." | "..");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || (byte == b'.' && !is_dots) {
            segment.push(byte.into());
        } else {
            // Writing to a string does not fail.
            write!(segment, "%{byte:02X}").ok();
        }
    }
    segment
}

/// The node's data and stat, not older than this call: a server may lag behind the others.
pub(super) async fn read(client: &Client, path: &str) -> Result<Option<(Vec<u8>, Stat)>, Error> {
    let synced = client.sync(path);
    let data = client.get_data(path);
    synced.await?;
    match data.await {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

impl ZooKeeper {
    /// Writes a node that still is as it was [`read`], and says whether it was.
    pub(super) async fn replace(
        &self,
        client: &Client,
        path: &str,
        version: Option<i32>,
        data: &[u8],
    ) -> Result<bool, Error> {
        let written = match version {
            None => {
                let made = self.create(client, path, data, CreateMode::Persistent);
                made.await.map(drop)
            }
            Some(version) => client.set_data(path, data, Some(version)).await.map(drop),
        };
        match written {
            Ok(()) => Ok(true),
            // Somebody else was quicker.
            Err(Error::BadVersion | Error::NodeExists) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates a node, and the ones above it where they are missing.
    pub(super) async fn create(
        &self,
        client: &Client,
        path: &str,
        data: &[u8],
        mode: CreateMode,
    ) -> Result<Stat, Error> {
        let options = self.options(mode);
        loop {
            match client.create(path, data, &options).await {
                Ok((stat, _)) => return Ok(stat),
                Err(Error::NoNode) => {}
                Err(error) => return Err(error),
            }
            let above = path.rfind('/').map_or("", |end| &path[..end]);
            let persistent = self.options(CreateMode::Persistent);
            client.mkdir(above, &persistent).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_names_are_different_parts() {
        let names = [
            "",
            "%",
            ".",
            "..",
            "a",
            "A",
            "a/b",
            "a%2Fb",
            "é",
            "e\u{301}",
            "a b",
            "a\0b",
            "zookeeper",
        ];
        let parts: std::collections::BTreeSet<String> =
            names.iter().map(|name| segment(name)).collect();
        assert_eq!(parts.len(), names.len(), "{parts:?}");
        for part in parts {
            assert!(
                !part.is_empty() && part.is_ascii() && !part.contains('/'),
                "{part}"
            );
        }
        assert_eq!(segment("keys-db_0.x"), "keys-db_0.x");
    }
}
