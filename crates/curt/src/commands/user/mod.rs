mod remove;
mod show;

use std::io::BufRead as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use curt_accounts::{
    AccountServices, NewUser, Origin, SignUp, UserEdit, UserRef, generate_password,
};
use curt_core::Role;
use curt_http::PublicUrl;

use super::accounts::{self, AllowedRate};
use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::exit_code::{CommandError, ExitReason};

/// Add, list and change users; works beside a running server
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt user add ann@example.com --first Ann --role admin\n  curt user limit ann@example.com --creations 1000/1h\n  curt user list"
)]
pub(crate) struct UserCommand {
    #[command(flatten)]
    config: ConfigArgs,

    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a user; without --password-stdin a password is made and printed, alone, on standard output
    #[command(after_help = "Example:\n  curt user add ann@example.com --first Ann --role admin")]
    Add(Add),
    /// List users, oldest first
    #[command(after_help = "Example:\n  curt user list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a user a new password and sign them out everywhere; without --password-stdin one is made and printed
    #[command(after_help = "Example:\n  curt user password ann@example.com --revoke-api-keys")]
    Password {
        /// The user's email
        email: String,
        #[command(flatten)]
        password: PasswordArgs,
        /// Revoke their API keys too, and every key that was made with one of them
        #[arg(long)]
        revoke_api_keys: bool,
    },
    /// Make a user an administrator or a member, and sign them out everywhere
    #[command(after_help = "Example:\n  curt user role ann@example.com admin")]
    Role {
        /// The user's email
        email: String,
        /// admin or member
        #[arg(value_parser = accounts::parse_role)]
        role: Role,
    },
    /// Keep a user and their API keys out, within a second
    #[command(after_help = "Example:\n  curt user disable ann@example.com")]
    Disable {
        /// The user's email
        email: String,
    },
    /// Let a user in again
    #[command(after_help = "Example:\n  curt user enable ann@example.com")]
    Enable {
        /// The user's email
        email: String,
    },
    /// Set how much a user may do; what is not named stays
    #[command(
        after_help = "Example:\n  curt user limit ann@example.com --creations 1000/1h --redirections none"
    )]
    Limit {
        /// The user's email
        email: String,
        /// Links made by all their keys together, such as 1000/1h; none: as the configuration says
        #[arg(long, value_name = "RATE", value_parser = accounts::parse_allowed_rate)]
        creations: Option<AllowedRate>,
        /// Clicks of all their links together, such as 1000/1h; none: as the configuration says
        #[arg(long, value_name = "RATE", value_parser = accounts::parse_allowed_rate)]
        redirections: Option<AllowedRate>,
    },
    /// List the browsers in which a user is signed in
    #[command(after_help = "Example:\n  curt user sessions ann@example.com")]
    Sessions {
        /// The user's email
        email: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Sign a user out everywhere
    #[command(after_help = "Example:\n  curt user sign-out ann@example.com")]
    SignOut {
        /// The user's email
        email: String,
    },
    /// Remove a user from a running server, for good: sessions and API keys end, links go to another user or are deleted
    #[command(
        after_help = "Example:\n  curt user rm ann@example.com --links-to bob@example.com --api-key KEY\n  curt user rm ann@example.com --delete-links --api-key KEY"
    )]
    Rm(remove::Remove),
    /// Make an invitation, with which one person can sign up, and print its address, alone, on standard output
    #[command(after_help = "Example:\n  curt user invite --role admin --ttl 1d")]
    Invite {
        /// What they become: admin or member
        #[arg(long, default_value = "member", value_parser = accounts::parse_role)]
        role: Role,
        /// How long it is good for
        #[arg(long, default_value = "7d", value_parser = accounts::parse_duration)]
        ttl: Duration,
    },
}

#[derive(Args, Debug)]
struct Add {
    /// What they sign in with
    email: String,
    /// First name; the part before the @ when none is given
    #[arg(long)]
    first: Option<String>,
    /// Middle name
    #[arg(long)]
    middle: Option<String>,
    /// Last name
    #[arg(long, default_value = "")]
    last: String,
    /// admin or member
    #[arg(long, default_value = "member", value_parser = accounts::parse_role)]
    role: Role,
    #[command(flatten)]
    password: PasswordArgs,
}

#[derive(Args, Debug)]
struct PasswordArgs {
    /// Read the password from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
}

impl UserCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            // The server must hear of links that change hands: it has copies of them.
            Action::Rm(remove) => remove.run(),
            action => accounts::run(&self.config, async |services, config| {
                act(action, services, config).await
            }),
        }
    }
}

async fn act(action: Action, services: &AccountServices, config: &Config) -> anyhow::Result<()> {
    let users = &services.users;
    match action {
        Action::Add(add) => add.run(services).await?,
        Action::List { json } => show::print_users(services, json).await?,
        Action::Password {
            email,
            password,
            revoke_api_keys,
        } => set_password(services, &email, &password, revoke_api_keys).await?,
        Action::Role { email, role } => {
            let edit = UserEdit {
                role: Some(role),
                ..UserEdit::default()
            };
            change(services, &email, edit).await?;
            done(&email, &format!("is {} now", role.name()));
        }
        Action::Disable { email } => {
            let user = accounts::find_user(services, &email).await?;
            let whom = UserRef::Id(user.id);
            users.disable(whom, Origin::OPERATOR).await?;
            done(&email, "is disabled");
        }
        Action::Enable { email } => {
            let user = accounts::find_user(services, &email).await?;
            users.enable(UserRef::Id(user.id), Origin::OPERATOR).await?;
            done(&email, "is enabled");
        }
        Action::Limit {
            email,
            creations,
            redirections,
        } => {
            let edit = UserEdit {
                creations: creations.map(|allowed| allowed.0),
                redirections: redirections.map(|allowed| allowed.0),
                ..UserEdit::default()
            };
            limit(services, &email, edit).await?;
        }
        Action::Sessions { email, json } => {
            let user = accounts::find_user(services, &email).await?;
            show::print_sessions(&users.sessions(user.id).await?, json)?;
        }
        Action::SignOut { email } => {
            let user = accounts::find_user(services, &email).await?;
            let ended = users.end_sessions(&user, Origin::OPERATOR).await?;
            done(&email, &format!("is signed out; sessions ended: {ended}"));
        }
        Action::Rm(remove) => remove.run()?,
        Action::Invite { role, ttl } => invite(services, config, role, ttl).await?,
    }
    Ok(())
}

async fn set_password(
    services: &AccountServices,
    email: &str,
    password: &PasswordArgs,
    revokes_api_keys: bool,
) -> anyhow::Result<()> {
    let user = accounts::find_user(services, email).await?;
    password
        .apply(async |text| {
            let whom = UserRef::Id(user.id);
            let users = &services.users;
            users.set_password(whom, text, Origin::OPERATOR).await?;
            let revoking = services.revoke_keys_if(revokes_api_keys, user.id, Origin::OPERATOR);
            Ok(revoking.await?)
        })
        .await
}

async fn limit(services: &AccountServices, email: &str, edit: UserEdit) -> anyhow::Result<()> {
    if edit == UserEdit::default() {
        let message = "nothing to change: name --creations or --redirections";
        return Err(CommandError::new(ExitReason::Refused, message).into());
    }
    change(services, email, edit).await?;
    done(email, "has the new limits");
    Ok(())
}

async fn invite(
    services: &AccountServices,
    config: &Config,
    role: Role,
    ttl: Duration,
) -> anyhow::Result<()> {
    let invited = services.users.invite(role, ttl, Origin::OPERATOR).await?;
    println!("{}", invite_address(config, &invited.code));
    if config.accounts.sign_up == SignUp::Closed {
        eprintln!(
            "curt: warning: accounts.sign_up is \"closed\": nobody can use the invitation until the server runs with \
             \"invite\" or \"open\""
        );
    }
    Ok(())
}

/// Says on standard error that it happened, so that standard output is what a script may use.
fn done(email: &str, what: &str) {
    eprintln!("curt: {email} {what}");
}

/// Where the invited person signs up.
fn invite_address(config: &Config, code: &str) -> String {
    let public = PublicUrl::new(config.http.api.public_url.as_deref());
    public.listening_on(config.http.server.listen);
    public.invite_url(code)
}

async fn change(services: &AccountServices, email: &str, edit: UserEdit) -> anyhow::Result<()> {
    let user = accounts::find_user(services, email).await?;
    let whom = UserRef::Id(user.id);
    services
        .users
        .edit(whom, &edit, None, Origin::OPERATOR)
        .await?;
    Ok(())
}

impl Add {
    async fn run(self, services: &AccountServices) -> anyhow::Result<()> {
        let before_at = self.email.split('@').next().unwrap_or_default();
        let first_name = self.first.unwrap_or_else(|| before_at.to_owned());
        let new_user = NewUser {
            first_name,
            middle_name: self.middle,
            last_name: self.last,
            email: self.email.clone(),
            password: String::new(),
        };
        self.password
            .apply(async |text| {
                let new_user = NewUser {
                    password: text.to_owned(),
                    ..new_user
                };
                services
                    .users
                    .add(&new_user, self.role, Origin::OPERATOR)
                    .await?;
                Ok(())
            })
            .await
    }
}

impl PasswordArgs {
    /// Uses the given password, or a new one, which is shown once it is in use.
    async fn apply(
        &self,
        used: impl AsyncFnOnce(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.password_stdin {
            return used(&read_password()?).await;
        }
        let password = generate_password();
        used(&password).await?;
        println!("{password}");
        Ok(())
    }
}

fn read_password() -> anyhow::Result<String> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .context("could not read the password from standard input")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
