//! The numbered steps that make the tables: forward only. An item says how far they came.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableStatus,
    TimeToLiveSpecification, TimeToLiveStatus,
};
use curt_adapter_kit::{Effect, Migration, pending_migrations};
use curt_core::{ErrorKind, PortError, PortResult, names};

use crate::address::Route;
use crate::failure::{BACKEND, corrupt, failed};
use crate::item::{EXPIRES, Item, Key, PARTITION, SORT, Table, number};

const OP: &str = "bring the tables up to date";
const MISSING: &str = "ResourceNotFoundException";
/// How often a new table is looked at, and how often at most: it takes some seconds.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LOOKS_MAX: u32 = 300;
const VERSION: &str = "version";

const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    name: "first",
    sql: include_str!("../migrations/0001_first.tables"),
}];

/// A table as a line of a migration has it.
struct NewTable<'a> {
    name: &'a str,
    is_sorted: bool,
    expires: bool,
}

/// The steps that the tables have not seen yet.
pub(crate) async fn pending(client: &Client, route: &Route) -> PortResult<&'static [Migration]> {
    steps_after(route, stored_version(client, route).await?)
}

/// Makes the tables that are missing, waits until they can be used, and returns what was done. Two at once do the same.
pub(crate) async fn migrate(client: &Client, route: &Route) -> PortResult<&'static [Migration]> {
    let steps = pending(client, route).await?;
    for step in steps {
        for table in tables(step.sql) {
            create(client, route, &table).await?;
        }
        for table in tables(step.sql) {
            wait_until_active(client, route, &table).await?;
            if table.expires {
                let_expire(client, route, &table).await?;
            }
        }
        store_version(client, route, step.stored_version()).await?;
        tracing::info!(
            event = names::event::MIGRATION_APPLIED,
            backend = BACKEND,
            number = step.number,
            name = step.name,
        );
    }
    Ok(steps)
}

fn tables(text: &str) -> impl Iterator<Item = NewTable<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let words: Vec<&str> = words.collect();
        Some(NewTable {
            name,
            is_sorted: words.contains(&"sorted"),
            expires: words.contains(&EXPIRES),
        })
    })
}

fn full_name(route: &Route, table: &str) -> String {
    format!("{}-{table}", route.prefix)
}

/// Creates a table whose requests are paid for one by one, unless it is there.
async fn create(client: &Client, route: &Route, table: &NewTable<'_>) -> PortResult<()> {
    let mut request = client
        .create_table()
        .table_name(full_name(route, table.name))
        .billing_mode(BillingMode::PayPerRequest);
    let mut keys = vec![(PARTITION, ScalarAttributeType::S, KeyType::Hash)];
    if table.is_sorted {
        keys.push((SORT, ScalarAttributeType::B, KeyType::Range));
    }
    for (name, kind, role) in keys {
        let attribute = AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(kind);
        let key = KeySchemaElement::builder()
            .attribute_name(name)
            .key_type(role);
        request = request
            .attribute_definitions(attribute.build().map_err(|error| corrupt(OP, error))?)
            .key_schema(key.build().map_err(|error| corrupt(OP, error))?);
    }
    match request.send().await {
        Err(error) if error.code() == Some("ResourceInUseException") => Ok(()),
        Err(error) => Err(failed(OP, route, Effect::Unknown, error)),
        Ok(_) => Ok(()),
    }
}

async fn wait_until_active(client: &Client, route: &Route, table: &NewTable<'_>) -> PortResult<()> {
    let name = full_name(route, table.name);
    for _ in 0..LOOKS_MAX {
        let answer = client.describe_table().table_name(&name).send().await;
        let status = match answer {
            Ok(answer) => answer.table.and_then(|table| table.table_status),
            // Its creation has not got around yet.
            Err(error) if error.code() == Some(MISSING) => None,
            Err(error) => return Err(failed(OP, route, Effect::None, error)),
        };
        if matches!(status, Some(TableStatus::Active | TableStatus::Updating)) {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let detail = format!("table {name} is still being made; try again");
    Err(PortError::new(ErrorKind::Unavailable, BACKEND, OP, detail))
}

/// Has the engine remove items after the time that they name.
async fn let_expire(client: &Client, route: &Route, table: &NewTable<'_>) -> PortResult<()> {
    let name = full_name(route, table.name);
    let answer = client
        .describe_time_to_live()
        .table_name(&name)
        .send()
        .await;
    let answer = answer.map_err(|error| failed(OP, route, Effect::None, error))?;
    let status = answer.time_to_live_description;
    let status = status.and_then(|described| described.time_to_live_status);
    if matches!(
        status,
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
    ) {
        return Ok(());
    }
    let setting = TimeToLiveSpecification::builder()
        .attribute_name(EXPIRES)
        .enabled(true);
    let request = client
        .update_time_to_live()
        .table_name(&name)
        .time_to_live_specification(setting.build().map_err(|error| corrupt(OP, error))?);
    match request.send().await {
        // Another process was quicker.
        Err(error) if error.code() == Some("ValidationException") => Ok(()),
        Err(error) => Err(failed(OP, route, Effect::Unknown, error)),
        Ok(_) => Ok(()),
    }
}

fn version_key() -> Key {
    Key::item("schema".to_owned())
}

async fn store_version(client: &Client, route: &Route, version: u32) -> PortResult<()> {
    let request = client
        .put_item()
        .table_name(full_name(route, Table::Items.name()))
        .set_item(Some(version_key().to_attributes()))
        .item(VERSION, number(version));
    let stored = request.send().await;
    stored
        .map(drop)
        .map_err(|error| failed(OP, route, Effect::Unknown, error))
}

async fn stored_version(client: &Client, route: &Route) -> PortResult<u32> {
    let request = client
        .get_item()
        .table_name(full_name(route, Table::Items.name()))
        .set_key(Some(version_key().to_attributes()))
        .consistent_read(true);
    match request.send().await {
        Ok(answer) => match answer.item {
            Some(item) => Item::new(OP, item).small(VERSION),
            None => Ok(0),
        },
        Err(error) if error.code() == Some(MISSING) => Ok(0),
        Err(error) => Err(failed(OP, route, Effect::None, error)),
    }
}

fn steps_after(route: &Route, version: u32) -> PortResult<&'static [Migration]> {
    pending_migrations(MIGRATIONS, version).map_err(|error| {
        let detail = format!("the tables at {route} were {error}");
        PortError::new(ErrorKind::Invalid, BACKEND, OP, detail)
    })
}
