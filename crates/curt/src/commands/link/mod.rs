//! A client of the REST API.

mod bulk;
mod erase_clicks;
mod fields;
pub(super) mod input;
mod qr;
mod show;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::bulk::Row;
use self::erase_clicks::EraseClicks;
use self::fields::Fields;
use self::input::parse_key;
use self::qr::Qr;
use super::client::{Client, ServerArgs};
use super::time::{self, Moment};
use crate::exit_code::{CommandError, ExitReason};

/// Make, find, change and delete links on a running server
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  export CURT_API_KEY=curt_…\n  curt link add https://example.com/a/long/address --alias plan --tag team\n  curt link list --search example"
)]
pub(crate) struct LinkCommand {
    #[command(subcommand)]
    action: Action,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Shorten URLs and print the short ones
    #[command(
        after_help = "Example:\n  curt link add example.com/a/long/address --alias plan --expires 7d\n  curt link add https://example.com/draft --visibility private\n  curt link add - --tag import < targets.txt     a target per line, and behind it an alias"
    )]
    Add {
        /// Where the link leads; several make several links, and - reads a target and an optional alias per line
        #[arg(required = true, value_name = "TARGET")]
        targets: Vec<String>,
        /// Your own key instead of a generated one
        #[arg(long)]
        alias: Option<String>,
        #[command(flatten)]
        fields: Fields,
    },
    /// Print one link
    #[command(
        after_help = "Example:\n  curt link show plan\n  curt link show https://go.example.com/plan --json"
    )]
    Show {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
    },
    /// List links, newest first
    #[command(after_help = "Example:\n  curt link list --search example --tag team --limit 20")]
    List(List),
    /// Change a link; what is not named stays
    #[command(
        after_help = "Example:\n  curt link edit plan --target https://example.com/new --expires never\n  echo secret | curt link edit plan --password-stdin"
    )]
    Edit {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
        /// The new target
        #[arg(long)]
        target: Option<String>,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Show a link's QR code in the terminal, or write it to a file
    #[command(
        after_help = "Example:\n  curt link qr plan\n  curt link qr plan --output plan.png --size 1024\n  curt link qr plan --output plan.svg --color 1a1a40 --margin 2"
    )]
    Qr(Qr),
    /// Delete a link; it can be restored for a time, and its key is not given away again
    #[command(after_help = "Example:\n  curt link rm plan")]
    Rm {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
    },
    /// Erase a link's single clicks, and its counts too if asked; there is no way back
    #[command(
        after_help = "Example:\n  curt link erase-clicks plan\n  curt link erase-clicks plan --counts"
    )]
    EraseClicks(EraseClicks),
    /// Switch a link off: visitors get 410 until it is enabled; for administrators
    #[command(after_help = "Example:\n  curt link disable plan")]
    Disable {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
    },
    /// Switch a link on again; for administrators
    #[command(after_help = "Example:\n  curt link enable plan")]
    Enable {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
    },
    /// Let a user follow a private link
    #[command(after_help = "Example:\n  curt link permit plan bob@example.com")]
    Permit {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
        /// The user's email
        email: String,
    },
    /// Take a permission back
    #[command(after_help = "Example:\n  curt link forbid plan bob@example.com")]
    Forbid {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
        /// The user's email
        email: String,
    },
    /// List who may follow a private link beside its owner
    #[command(after_help = "Example:\n  curt link permissions plan")]
    Permissions {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
    },
    /// Make a deleted or expired link redirect again
    #[command(after_help = "Example:\n  curt link restore plan --expires never")]
    Restore {
        /// The link's key or short URL
        #[arg(value_parser = parse_key)]
        key: String,
        /// When the link ends: 7d, 2027-01-31 or never; as before unless that is over
        #[arg(long, value_name = "TIME", value_parser = time::parse_end)]
        expires: Option<Moment>,
    },
}

#[derive(Args, Debug)]
struct List {
    /// Part of the key, target or title
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only links with this tag; may be given many times
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only links in this state: active, scheduled, exhausted, expired, disabled or deleted; all but deleted ones otherwise
    #[arg(long)]
    state: Option<String>,
    /// Whose links: a user's id, or all; for administrators
    #[arg(long)]
    owner: Option<String>,
    /// newest, oldest, key, -key or clicks
    #[arg(long, allow_hyphen_values = true)]
    order: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Where to go on, as the page before said
    #[arg(long)]
    cursor: Option<String>,
}

impl List {
    fn into_query(self) -> Vec<(&'static str, String)> {
        let mut query = vec![("limit", self.limit.to_string())];
        for (name, value) in [
            ("search", self.search),
            ("state", self.state),
            ("owner_id", self.owner),
            ("order", self.order),
            ("cursor", self.cursor),
        ] {
            query.extend(value.map(|value| (name, value)));
        }
        query.extend(self.tags.into_iter().map(|tag| ("tag", tag)));
        query
    }
}

impl LinkCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.server.client()?;
        let json = self.server.json;
        let answer = match self.action {
            Action::Add {
                targets,
                alias,
                fields,
            } => return add(&client, targets, alias, fields, json),
            Action::Show { key } => client.get(&["links", &key], &[])?,
            Action::List(list) => {
                let page = client.get(&["links"], &list.into_query())?;
                return show::page(&page, json);
            }
            Action::Edit {
                key,
                target,
                fields,
            } => edit(&client, &key, target, *fields)?,
            Action::Restore { key, expires } => {
                let body = match expires {
                    Some(expires) => json!({ "expires_at": Value::from(expires) }),
                    None => json!({}),
                };
                client.post(&["links", &key, "restore"], &body)?
            }
            Action::Rm { key } => {
                client.delete(&["links", &key])?;
                json!({ "deleted": key })
            }
            Action::Qr(qr) => return qr.run(&client),
            Action::EraseClicks(erase) => erase.run(&client)?,
            Action::Disable { key } => client.post(&["links", &key, "disable"], &json!({}))?,
            Action::Enable { key } => client.post(&["links", &key, "enable"], &json!({}))?,
            Action::Permit { key, email } => {
                let whom = json!({ "email": email });
                client.post(&["links", &key, "permissions"], &whom)?
            }
            Action::Forbid { key, email } => {
                forbid(&client, &key, &email)?;
                json!({ "forbidden": email })
            }
            Action::Permissions { key } => {
                let granted = client.get(&["links", &key, "permissions"], &[])?;
                return show::permissions(&granted, json);
            }
        };
        show::one(&answer, json)
    }
}

fn refused(message: &str) -> anyhow::Error {
    CommandError::new(ExitReason::Refused, message).into()
}

fn add(
    client: &Client,
    targets: Vec<String>,
    alias: Option<String>,
    fields: Fields,
    json: bool,
) -> anyhow::Result<()> {
    let is_stdin = targets == ["-"];
    if is_stdin && fields.read_stdin() {
        return Err(refused(
            "--password-stdin: standard input has the targets; give the password at the terminal with --password",
        ));
    }
    if (is_stdin || targets.len() > 1) && alias.is_some() {
        return Err(refused(
            "--alias: one alias cannot name several links; on standard input each line may have its own",
        ));
    }
    let mut body = fields.into_body()?;
    match <[String; 1]>::try_from(targets) {
        Ok([target]) if !is_stdin => {
            body.insert("target".to_owned(), target.into());
            if let Some(alias) = alias {
                body.insert("alias".to_owned(), alias.into());
            }
            let link = client.post(&["links"], &Value::Object(body))?;
            show::created(&link, json)
        }
        Ok(_) => bulk::create(client, &bulk::stdin_rows()?, &body, json),
        Err(targets) => {
            let rows: Vec<Row> = targets.into_iter().map(Row::of_argument).collect();
            bulk::create(client, &rows, &body, json)
        }
    }
}

fn edit(
    client: &Client,
    key: &str,
    target: Option<String>,
    fields: Fields,
) -> anyhow::Result<Value> {
    let mut body = fields.into_body()?;
    if let Some(target) = target {
        body.insert("target".to_owned(), target.into());
    }
    if body.is_empty() {
        let message = "nothing to change: name at least one field, such as --target";
        return Err(refused(message));
    }
    client.patch(&["links", key], &Value::Object(body))
}

fn forbid(client: &Client, key: &str, email: &str) -> anyhow::Result<()> {
    let granted = client.get(&["links", key, "permissions"], &[])?;
    let granted = granted["permissions"].as_array().into_iter().flatten();
    let is_theirs = |one: &&Value| {
        let theirs = one["email"].as_str();
        theirs.is_some_and(|theirs| theirs.eq_ignore_ascii_case(email))
    };
    let Some(id) = granted
        .into_iter()
        .find(is_theirs)
        .and_then(|one| one["id"].as_str())
    else {
        let message =
            format!("{email:?} has no permission for this link (curt link permissions {key})");
        return Err(CommandError::new(ExitReason::NotFound, message).into());
    };
    client.delete(&["links", key, "permissions", id])
}
