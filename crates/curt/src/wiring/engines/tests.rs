use std::path::Path;
use std::sync::Arc;

use curt_core::{ErrorKind, SystemClock};
use curt_sqlite::Access;

use super::{EngineAddress, Engines};
use crate::config::Config;
use crate::wiring::table::Part;

/// An address of every engine. Those that run elsewhere connect with their first call.
const ADDRESSES: [&str; 14] = [
    "sqlite:a.db",
    "postgres://me@127.0.0.1:1/a",
    "mysql://me@127.0.0.1:1/a",
    "cassandra://127.0.0.1:1/a",
    "dynamodb://key:secret@local/a?endpoint=http://127.0.0.1:1",
    "redis://127.0.0.1:1",
    "memcached://127.0.0.1:1",
    "zookeeper://127.0.0.1:1/a",
    "kafka://127.0.0.1:1/a",
    "file:keys",
    "hdfs://127.0.0.1:1/a",
    "s3://key:secret@bucket/a?endpoint=http://127.0.0.1:1&region=eu",
    "spool:spool",
    "memory:",
];

fn engines() -> Engines {
    let config = Config::with(&[]).unwrap();
    super::super::engines(&config, "a test", Access::Command, Arc::new(SystemClock))
}

/// The address, read for a part that its engine serves.
fn read(text: &str, folder: &Path) -> EngineAddress {
    let read = Part::ALL.map(|part| EngineAddress::parse(text, part, folder));
    read.into_iter().find_map(Result::ok).unwrap()
}

#[tokio::test]
async fn what_the_table_promises_can_be_opened_and_nothing_else() {
    for text in ADDRESSES {
        for part in Part::ALL {
            let folder = tempfile::tempdir().unwrap();
            let address = read(text, folder.path());
            let kind = address.kind();
            let promised = kind
                .require_serves(part)
                .and_then(|()| kind.require_built());
            let opened = engines().check(part, &address);
            assert_eq!(
                opened.map_err(|error| error.kind),
                promised.map_err(|_| ErrorKind::Invalid),
                "{text} as {}",
                part.setting()
            );
        }
    }
}
