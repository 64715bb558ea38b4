use clap::Args;
use serde_json::Value;

use crate::commands::client::{Client, ServerArgs};
use crate::exit_code::{CommandError, ExitReason};

/// A page of the API's list.
const PAGE: usize = 200;

#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The user's email
    email: String,

    /// The email of the user who gets their links
    #[arg(long, value_name = "EMAIL", conflicts_with = "delete_links")]
    links_to: Option<String>,

    /// Delete their links
    #[arg(long)]
    delete_links: bool,

    #[command(flatten)]
    server: ServerArgs,
}

impl Remove {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let client = self.server.client()?;
        let id = find_id(&client, &self.email)?;
        let mut query = Vec::new();
        if let Some(heir) = &self.links_to {
            query.push(("links_to", find_id(&client, heir)?));
        }
        if self.delete_links {
            query.push(("delete_links", "true".to_owned()));
        }
        client.delete_with(&["users", &id], &query)?;
        super::done(&self.email, "is removed");
        Ok(())
    }
}

/// The id of the user with that email.
fn find_id(client: &Client, email: &str) -> anyhow::Result<String> {
    let mut position: Option<String> = None;
    loop {
        let mut query = vec![("limit", PAGE.to_string())];
        query.extend(position.take().map(|next| ("after", next)));
        let page = client.get(&["users"], &query)?;
        let users = page["users"].as_array().into_iter().flatten();
        let is_meant = |user: &&Value| {
            let theirs = user["email"].as_str();
            theirs.is_some_and(|theirs| theirs.eq_ignore_ascii_case(email))
        };
        if let Some(id) = users
            .into_iter()
            .find(is_meant)
            .and_then(|user| user["id"].as_str())
        {
            return Ok(id.to_owned());
        }
        position = page["next"].as_str().map(str::to_owned);
        if position.is_none() {
            let message = format!("there is no user {email:?} (curt user list shows them)");
            return Err(CommandError::new(ExitReason::NotFound, message).into());
        }
    }
}
