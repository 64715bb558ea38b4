//! What the tests share: one server, and tables of its own for each test.

use std::time::Duration;

use anyhow::Result;
use curt_dynamodb::{DynamoDb, DynamoDbSettings};
use curt_testkit::engines::{dynamodb, unique};

pub(crate) fn settings() -> DynamoDbSettings {
    DynamoDbSettings {
        // The machine may be busy with other tests.
        connect_timeout: Duration::from_secs(30),
        call_timeout: Duration::from_secs(60),
        background_timeout: Duration::from_secs(60),
        totals_interval: Duration::ZERO,
        ..DynamoDbSettings::default()
    }
}

/// Tables that no other test has. They are made with the first call.
pub(crate) fn fresh() -> Result<DynamoDb> {
    let url = dynamodb::shared()?.url(&unique("test"));
    Ok(DynamoDb::open(&url, &settings())?)
}
