//! What can be said about a link, new or not.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::input;
use crate::commands::time::{self, Moment};

#[derive(Args, Debug)]
pub(super) struct Fields {
    /// A title for your lists
    #[arg(long)]
    title: Option<String>,
    /// A tag; may be given many times, and replaces all tags when editing
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// When the link ends: 7d (from now), 2027-01-31 (the end of that day in UTC), 2027-01-31T12:00:00Z, or never
    #[arg(long, value_name = "TIME", value_parser = time::parse_end)]
    expires: Option<Moment>,
    /// When the link begins, written as for --expires; never: at once
    #[arg(long, value_name = "TIME", value_parser = time::parse_begin)]
    valid_since: Option<Moment>,
    /// The redirect status: 301, 302, 307 or 308
    #[arg(long, value_name = "CODE")]
    status: Option<u16>,
    /// Whether the visitor's query is added to the target
    #[arg(long, value_name = "BOOLEAN")]
    forward_query: Option<bool>,
    /// How many people may follow the link: a number, or any
    #[arg(long, value_name = "NUMBER", value_parser = input::parse_max_clicks)]
    max_clicks: Option<Value>,
    /// Who may follow the link
    #[arg(long, value_enum)]
    visibility: Option<Visibility>,
    /// Ask for a password at the terminal, which visitors then have to know
    #[arg(long, conflicts_with = "password_stdin")]
    password: bool,
    /// Read that password from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Visibility {
    /// Everybody
    Public,
    /// You, and users with a permission (curt link permit)
    Private,
    /// Whoever knows the password
    Password,
}

impl Visibility {
    fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Password => "password",
        }
    }
}

impl Fields {
    /// Whether standard input is needed for the password.
    pub(super) fn read_stdin(&self) -> bool {
        self.password_stdin
    }

    /// The body of a request, without target and alias.
    pub(super) fn into_body(self) -> anyhow::Result<Map<String, Value>> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        let asks = self.password || self.password_stdin;
        let wants = asks || self.visibility == Some(Visibility::Password);
        let visibility = match self.visibility {
            // A password that is given is meant to count.
            None if asks => Some(Visibility::Password),
            chosen => chosen,
        };
        put("title", self.title.map(Value::from));
        put("tags", (!self.tags.is_empty()).then(|| self.tags.into()));
        put("expires_at", self.expires.map(Value::from));
        put("valid_since", self.valid_since.map(Value::from));
        put("redirect_status", self.status.map(Value::from));
        put("forward_query", self.forward_query.map(Value::from));
        put("max_clicks", self.max_clicks);
        put(
            "visibility",
            visibility.map(|visibility| visibility.name().into()),
        );
        if wants {
            let password = input::read_password(self.password_stdin)?;
            put("password", Some(password.into()));
        }
        Ok(body)
    }
}
