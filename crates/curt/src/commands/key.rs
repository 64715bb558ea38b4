use anyhow::Context as _;
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use jiff::Timestamp;

use super::block_on;
use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::first_key::FIRST_OWNER;
use crate::wiring::{self, Beside};

/// Make, list and revoke API keys; works beside a running server
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  KEY=$(curt key add deploy-script)\n  curt key list\n  curt key revoke PREFIX"
)]
pub(crate) struct KeyCommand {
    #[command(flatten)]
    config: ConfigArgs,

    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key and print it, alone, on standard output; it is not shown again
    Add {
        /// What the key is for
        name: String,
        /// Whose links the key manages; made when new
        #[arg(long, default_value = FIRST_OWNER)]
        owner: String,
        /// When the key stops working: 2027-01-31T12:00:00Z
        #[arg(long, value_name = "TIME")]
        expires: Option<Timestamp>,
    },
    /// List keys without their secrets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop a key from working, within a second
    Revoke {
        /// The key's prefix: its part between the first and the second underscore
        prefix: String,
    },
}

impl KeyCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let beside = Beside::open(&config)?;
            let done = act(self.action, &beside).await;
            beside.close().await;
            done
        })
    }
}

async fn act(action: Action, beside: &Beside) -> anyhow::Result<()> {
    match action {
        Action::Add {
            name,
            owner,
            expires,
        } => {
            let expires = expires.map(|time| curt_core::UnixMillis(time.as_millisecond()));
            let issued = beside.api_keys.issue(&owner, &name, expires).await?;
            println!("{}", issued.token);
        }
        Action::List { json } => list(beside, json).await?,
        Action::Revoke { prefix } => {
            beside.api_keys.revoke(&prefix).await.with_context(|| {
                format!("could not revoke {prefix:?} (curt key list shows the prefixes)")
            })?;
        }
    }
    Ok(())
}

async fn list(beside: &Beside, json: bool) -> anyhow::Result<()> {
    let keys = beside.api_keys.list().await?;
    if json {
        let rows: Vec<_> = keys
            .iter()
            .map(|(owner, key)| {
                serde_json::json!({
                    "prefix": key.prefix, "name": key.name, "owner": owner.name,
                    "created_at": wiring::rfc3339(key.created_at),
                    "expires_at": key.expires_at.map(wiring::rfc3339),
                    "revoked_at": key.revoked_at.map(wiring::rfc3339),
                })
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["prefix", "name", "owner", "created", "expires", "revoked"]);
    for (owner, key) in &keys {
        let or_dash = |time: Option<_>| time.map_or_else(|| "-".to_owned(), wiring::rfc3339);
        table.add_row([
            key.prefix.to_string(),
            key.name.to_string(),
            owner.name.to_string(),
            wiring::rfc3339(key.created_at),
            or_dash(key.expires_at),
            or_dash(key.revoked_at),
        ]);
    }
    println!("{table}");
    Ok(())
}
