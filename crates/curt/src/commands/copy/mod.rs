//! A store copied to another, of whichever engine.

mod run;
mod sides;

use clap::Args;
use serde_json::{Value, json};

use self::run::CopyRun;
use self::sides::{CopySides, open_source};
use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;

/// Copy all links of a database to another, of whichever engine, and compare them
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt copy --from sqlite:curt.db --to postgres://curt@db.example.com/curt\n  curt copy --from sqlite:curt.db --to postgres://curt@db.example.com/curt --resume     after it was stopped\n  curt copy --from sqlite:curt.db --to postgres://curt@db.example.com/curt --follow     beside a running server, until Ctrl-C"
)]
pub(crate) struct Copy {
    #[command(flatten)]
    config: ConfigArgs,

    /// The database to copy, as in store.links; a path starts at data_dir
    #[arg(long, value_name = "URL")]
    from: String,

    /// The database to copy to; no server may use it yet
    #[arg(long, value_name = "URL", required_unless_present = "abandon")]
    to: Option<String>,

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
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let report = match &self.to {
                Some(to) => self.copy(&config, to).await?,
                None => self.give_up(&config).await?,
            };
            match self.json {
                true => println!("{report}"),
                false => print_report(&report),
            }
            Ok(())
        })
    }

    async fn copy(&self, config: &Config, to: &str) -> anyhow::Result<Value> {
        let sides = CopySides::open(config, &self.from, to).await?;
        let copied = CopyRun {
            sides: &sides,
            options: self,
        };
        let copied = copied.run().await;
        sides.close().await;
        copied
    }

    async fn give_up(&self, config: &Config) -> anyhow::Result<Value> {
        let (source, engines) = open_source(config, &self.from)?;
        let stopped = source.transfer.stop_following(None).await;
        engines.close().await;
        stopped?;
        Ok(json!({ "abandoned": true }))
    }
}

fn print_report(report: &Value) {
    let links = &report["links"];
    if links.is_null() {
        println!("the source remembers no changes for a copy any more");
        return;
    }
    println!(
        "items copied: {} ({} written)",
        links["copied"], links["written"]
    );
    if !links["followed"].is_null() {
        println!("changes followed: {}", links["followed"]);
    }
    match links["checksum"].as_str() {
        Some(checksum) => println!(
            "compared: {} items at the source, all of them at the destination; checksum {checksum}",
            links["items"]
        ),
        None => println!("not compared"),
    }
}
