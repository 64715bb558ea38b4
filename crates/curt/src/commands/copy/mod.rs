//! A store copied to another, of whichever engine.

mod addresses;
mod run;
mod sides;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use self::addresses::SideOptions;
use self::run::CopyRun;
use self::sides::{CopySides, OpenSide};
use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CopiedPart {
    Links,
    /// Users, API keys, invitations, permissions, limits and the audit log; not sessions
    Accounts,
    /// Counts, single clicks, salts, and how far streams are counted
    Clicks,
}

/// Copy links, accounts and clicks to other databases, of whichever engine, and compare them
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt copy --from sqlite:curt.db --to postgres://curt@db.example.com/curt\n  curt copy --from sqlite:curt.db --to postgres://curt@db.example.com/curt --resume     after it was stopped\n  curt copy --from sqlite:curt.db --to postgres://curt@db.example.com/curt --follow     beside a running server, until Ctrl-C\n  curt copy --from sqlite:curt.db --to postgres://db1/curt --to postgres://db2/curt     over several databases\n  curt copy --config new.toml --from sqlite:/var/lib/curt/curt.db --to config     to where the configuration says\n  curt copy --from sqlite:curt.db --to cassandra://c1,c2,c3/curt --what links,accounts"
)]
pub(crate) struct Copy {
    #[command(flatten)]
    config: ConfigArgs,

    /// The database to copy, as in store.links; a path starts at data_dir. Of links over several databases, every node, each
    /// with an option of its own; `config`: what the configuration names
    #[arg(long, value_name = "URL", required = true)]
    from: Vec<String>,

    /// The database to copy to, which no server may use yet; several: each gets its share, by links.placement;
    /// `config`: what the configuration names
    #[arg(long, value_name = "URL", required_unless_present = "abandon")]
    to: Vec<String>,

    /// The accounts database to copy, where it is not the first of --from
    #[arg(long, value_name = "URL")]
    from_accounts: Option<String>,

    /// The clicks database to copy, where it is not the one beside --from
    #[arg(long, value_name = "URL")]
    from_clicks: Option<String>,

    /// The accounts database to copy to, where it is not the first of --to
    #[arg(long, value_name = "URL")]
    to_accounts: Option<String>,

    /// The clicks database to copy to, where it is not the one beside --to
    #[arg(long, value_name = "URL")]
    to_clicks: Option<String>,

    /// What to copy
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "PARTS",
        default_value = "links,accounts,clicks"
    )]
    what: Vec<CopiedPart>,

    /// Go on with a copy that was stopped or killed
    #[arg(long)]
    resume: bool,

    /// Copy to a database that is not empty: what is newer there stays, and a key that another link has there is an error
    #[arg(long, conflicts_with = "resume")]
    into_existing: bool,

    /// Copy what changes, too, until Ctrl-C or SIGTERM tells that the source takes no more writes
    #[arg(long)]
    follow: bool,

    /// Items copied in a second at most; 0: no limit
    #[arg(long, value_name = "ITEMS", default_value_t = 0)]
    rate: u64,

    /// Do not read both databases again to compare them
    #[arg(long)]
    no_verify: bool,

    /// Give up a copy that followed: the source remembers no more changes for it
    #[arg(long, conflicts_with_all = ["to", "resume", "into_existing", "follow"])]
    abandon: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Copy {
    fn source(&self) -> SideOptions<'_> {
        SideOptions {
            option: "--from",
            links: &self.from,
            accounts: self.from_accounts.as_deref(),
            clicks: self.from_clicks.as_deref(),
        }
    }

    fn destination(&self) -> SideOptions<'_> {
        SideOptions {
            option: "--to",
            links: &self.to,
            accounts: self.to_accounts.as_deref(),
            clicks: self.to_clicks.as_deref(),
        }
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let report = match self.abandon {
                false => self.copy(&config).await?,
                true => self.give_up(&config).await?,
            };
            match self.json {
                true => println!("{report}"),
                false => print_report(&report),
            }
            Ok(())
        })
    }

    async fn copy(&self, config: &Config) -> anyhow::Result<Value> {
        let sides = CopySides::open(config, self).await?;
        let copied = CopyRun {
            sides: &sides,
            options: self,
        };
        let copied = copied.run().await;
        sides.close().await;
        copied
    }

    async fn give_up(&self, config: &Config) -> anyhow::Result<Value> {
        let source = OpenSide::open_source(config, self).await?;
        let stopped = source.links.transfer.stop_following(None).await;
        source.close().await;
        stopped?;
        Ok(json!({ "abandoned": true }))
    }
}

fn print_report(report: &Value) {
    if report["abandoned"].is_boolean() {
        println!("the source remembers no changes for a copy any more");
        return;
    }
    for part in ["links", "accounts", "clicks"] {
        let copied = &report[part];
        if copied.is_null() {
            continue;
        }
        println!(
            "{part}: {} items copied, {} written",
            copied["copied"], copied["written"]
        );
        if !copied["followed"].is_null() {
            println!("{part}: {} changes followed", copied["followed"]);
        }
        match copied["checksum"].as_str() {
            Some(checksum) => println!(
                "{part}: compared: {} items at the source, all of them at the destination; checksum {checksum}",
                copied["items"]
            ),
            None => println!("{part}: not compared"),
        }
    }
}
