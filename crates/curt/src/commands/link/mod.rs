//! A client of the REST API.

mod show;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::client::ServerArgs;

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
    /// Shorten a URL and print the short one
    Add {
        target: String,
        /// Your own key instead of a generated one
        #[arg(long)]
        alias: Option<String>,
        #[command(flatten)]
        fields: Fields,
    },
    /// Print one link
    Show { key: String },
    /// List links, newest first
    List {
        /// Part of the key, target or title
        #[arg(long)]
        search: Option<String>,
        /// Only links with this tag; may be given many times
        #[arg(long = "tag")]
        tags: Vec<String>,
        /// How many at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Where to go on, as the page before said
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Change a link; what is not named stays
    Edit {
        key: String,
        /// The new target
        #[arg(long)]
        target: Option<String>,
        #[command(flatten)]
        fields: Fields,
    },
    /// Delete a link; its key is not given away again
    Rm { key: String },
}

#[derive(Args, Debug)]
struct Fields {
    /// A title for your lists
    #[arg(long)]
    title: Option<String>,
    /// A tag; may be given many times, and replaces all tags when editing
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// When the link ends: 2027-01-31T12:00:00Z, or never
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// When the link begins
    #[arg(long, value_name = "TIME")]
    valid_since: Option<String>,
    /// 301, 302, 307 or 308
    #[arg(long)]
    status: Option<u16>,
    /// Whether the visitor's query is added to the target
    #[arg(long)]
    forward_query: Option<bool>,
    /// How many people may follow the link: a number, or any
    #[arg(long, value_name = "NUMBER", value_parser = max_clicks)]
    max_clicks: Option<Value>,
}

fn max_clicks(text: &str) -> Result<Value, std::num::ParseIntError> {
    if text == "any" {
        return Ok(Value::Null);
    }
    text.parse::<u64>().map(Value::from)
}

impl Fields {
    fn into_body(self) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        put("title", self.title.map(Value::from));
        put("tags", (!self.tags.is_empty()).then(|| self.tags.into()));
        put(
            "expires_at",
            self.expires.map(|time| {
                if time == "never" {
                    Value::Null
                } else {
                    time.into()
                }
            }),
        );
        put("valid_since", self.valid_since.map(Value::from));
        put("redirect_status", self.status.map(Value::from));
        put("forward_query", self.forward_query.map(Value::from));
        put("max_clicks", self.max_clicks);
        body
    }
}

impl LinkCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.server.client()?;
        let answer = match self.action {
            Action::Add {
                target,
                alias,
                fields,
            } => {
                let mut body = fields.into_body();
                body.insert("target".to_owned(), target.into());
                if let Some(alias) = alias {
                    body.insert("alias".to_owned(), alias.into());
                }
                let link = client.post("/api/v1/links", &Value::Object(body))?;
                return show::created(&link, self.server.json);
            }
            Action::Show { key } => client.get(&["api", "v1", "links", &key], &[])?,
            Action::List {
                search,
                tags,
                limit,
                cursor,
            } => {
                let mut query = vec![("limit", limit.to_string())];
                query.extend(search.map(|text| ("search", text)));
                query.extend(cursor.map(|cursor| ("cursor", cursor)));
                query.extend(tags.into_iter().map(|tag| ("tag", tag)));
                let page = client.get(&["api", "v1", "links"], &query)?;
                return show::page(&page, self.server.json);
            }
            Action::Edit {
                key,
                target,
                fields,
            } => {
                let mut body = fields.into_body();
                if let Some(target) = target {
                    body.insert("target".to_owned(), target.into());
                }
                anyhow::ensure!(
                    !body.is_empty(),
                    "nothing to change: name at least one field, such as --target"
                );
                client.patch(&key, &Value::Object(body))?
            }
            Action::Rm { key } => {
                client.delete(&key)?;
                json!({ "deleted": key })
            }
        };
        show::one(&answer, self.server.json)
    }
}
