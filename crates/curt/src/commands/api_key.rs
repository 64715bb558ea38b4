use anyhow::Context as _;
use clap::{Args, Subcommand};
use curt_accounts::{AccountServices, NewKey, Origin};
use curt_core::ports::ApiKey;
use curt_core::{Allowance, Role, Scope, Scopes, User};
use std::time::Duration;

use super::accounts::{self, AllowedRate, format_rule, format_time_or_dash};
use super::terminal;
use super::time::{self, Moment};
use crate::cli::ConfigArgs;
use crate::exit_code::{CommandError, ExitReason};
use crate::wiring;

/// Make, list, rotate and revoke API keys; works beside a running server
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  KEY=$(curt api-key add deploy-script --scopes create)\n  curt api-key list\n  curt api-key rotate PREFIX --overlap 24h\n  curt api-key revoke PREFIX"
)]
pub(crate) struct ApiKeyCommand {
    #[command(flatten)]
    config: ConfigArgs,

    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key and print it, alone, on standard output; it is not shown again
    #[command(
        after_help = "Example:\n  KEY=$(curt api-key add deploy-script --scopes create --expires 90d)"
    )]
    Add(Add),
    /// List keys without their secrets
    #[command(after_help = "Example:\n  curt api-key list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a key that takes another's place, and print it, alone; both work for a while
    #[command(after_help = "Example:\n  curt api-key rotate PREFIX --overlap 0s")]
    Rotate {
        /// The old key's prefix: its part between the first and the second underscore
        prefix: String,
        /// How long the old key goes on working
        #[arg(long, default_value = "24h", value_parser = accounts::parse_duration)]
        overlap: Duration,
    },
    /// Stop a key, and every key that was made with it, from working, within a second
    #[command(after_help = "Example:\n  curt api-key revoke PREFIX")]
    Revoke {
        /// The key's prefix: its part between the first and the second underscore
        prefix: String,
    },
}

#[derive(Args, Debug)]
struct Add {
    /// What the key is for
    name: String,
    /// Whose links the key manages; the operator's, or else the oldest administrator's, when none is named
    #[arg(long, value_name = "EMAIL")]
    user: Option<String>,
    /// What the key may do: read, create, manage, admin. All but admin by default; the operator's has that too
    #[arg(long, value_delimiter = ',', value_parser = accounts::parse_scope)]
    scopes: Vec<Scope>,
    /// When the key stops working: 90d (from now), 2027-01-31 (the end of that day in UTC), 2027-01-31T12:00:00Z, or never
    #[arg(long, value_name = "TIME", value_parser = time::parse_end)]
    expires: Option<Moment>,
    /// How many links it may make, such as 1000/1h
    #[arg(long, value_name = "RATE", value_parser = accounts::parse_allowed_rate)]
    creations: Option<AllowedRate>,
    /// How often its links may be followed, such as 1000/1h
    #[arg(long, value_name = "RATE", value_parser = accounts::parse_allowed_rate)]
    redirections: Option<AllowedRate>,
}

impl ApiKeyCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        accounts::run(&self.config, async |services, _| {
            act(self.action, services).await
        })
    }
}

async fn act(action: Action, services: &AccountServices) -> anyhow::Result<()> {
    let unknown = |prefix: &str| {
        format!("could not change {prefix:?} (curt api-key list shows the prefixes)")
    };
    let keys = &services.api_keys;
    match action {
        Action::Add(add) => {
            let issued = add.issue(services).await?;
            println!("{issued}");
        }
        Action::List { json } => list(services, json).await?,
        Action::Rotate { prefix, overlap } => {
            let issued = keys
                .rotate(&prefix, None, overlap, Scopes::ALL, Origin::OPERATOR)
                .await
                .with_context(|| unknown(&prefix))?;
            println!("{}", issued.token);
        }
        Action::Revoke { prefix } => {
            keys.revoke(&prefix, None, Scopes::ALL, Origin::OPERATOR)
                .await
                .with_context(|| unknown(&prefix))?;
            eprintln!("curt: API key {prefix} is revoked");
        }
    }
    Ok(())
}

impl Add {
    async fn issue(self, services: &AccountServices) -> anyhow::Result<String> {
        let (user, usual) = match &self.user {
            Some(email) => (accounts::find_user(services, email).await?, usual_scopes()),
            None => (services.users.ensure_operator().await?, Scopes::ALL),
        };
        let chosen: Scopes = self.scopes.into_iter().collect();
        let key = NewKey {
            user: user.id,
            name: self.name,
            scopes: if chosen.is_empty() { usual } else { chosen },
            allowance: Allowance {
                creations: self.creations.and_then(|allowed| allowed.0),
                redirections: self.redirections.and_then(|allowed| allowed.0),
            },
            expires_at: self.expires.and_then(|moment| moment.at),
        };
        if key.scopes.has(Scope::Admin) && user.role != Role::Admin {
            let message = format!(
                "{} is no administrator: leave out the scope admin",
                user.email
            );
            return Err(CommandError::new(ExitReason::Refused, message).into());
        }
        let issued = services
            .api_keys
            .issue(key, Scopes::ALL, Origin::OPERATOR)
            .await?;
        Ok(issued.token)
    }
}

fn usual_scopes() -> Scopes {
    [Scope::Read, Scope::Create, Scope::Manage]
        .into_iter()
        .collect()
}

async fn list(services: &AccountServices, json: bool) -> anyhow::Result<()> {
    let users = accounts::all_users(services).await?;
    let keys = services.api_keys.list(None).await?;
    if json {
        let rows: Vec<_> = keys.iter().map(|key| as_json(key, &users)).collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    let mut table = terminal::table([
        "prefix",
        "name",
        "user",
        "scopes",
        "parent",
        "created",
        "expires",
        "revoked",
        "last used",
    ]);
    for key in &keys {
        table.add_row([
            key.prefix.to_string(),
            key.name.to_string(),
            email(key, &users).to_owned(),
            scopes(key).join(","),
            key.parent.as_deref().unwrap_or("-").to_owned(),
            wiring::rfc3339(key.created_at),
            format_time_or_dash(key.expires_at),
            format_time_or_dash(key.revoked_at),
            format_time_or_dash(key.last_used_at),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn as_json(key: &ApiKey, users: &[User]) -> serde_json::Value {
    serde_json::json!({
        "prefix": key.prefix, "name": key.name, "user": email(key, users), "scopes": scopes(key),
        "parent": key.parent,
        "creations": format_rule(key.allowance.creations),
        "redirections": format_rule(key.allowance.redirections),
        "created_at": wiring::rfc3339(key.created_at),
        "expires_at": key.expires_at.map(wiring::rfc3339),
        "revoked_at": key.revoked_at.map(wiring::rfc3339),
        "last_used_at": key.last_used_at.map(wiring::rfc3339),
    })
}

fn email<'a>(key: &ApiKey, users: &'a [User]) -> &'a str {
    let user = users.iter().find(|user| user.id == key.user);
    user.map_or("-", |user| &user.email)
}

fn scopes(key: &ApiKey) -> Vec<&'static str> {
    key.scopes.iter().map(Scope::name).collect()
}
