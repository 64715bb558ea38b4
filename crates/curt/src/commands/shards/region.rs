use clap::Args;
use curt_core::NodeIndex;
use curt_shards::assign_region;
use curt_sqlite::Access;
use serde_json::json;

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::ShardStores;

/// Say in which region a node is written: generated keys of servers there are such that their links are on it
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt shards region 1 us --config curt.toml\n  curt shards region 1 --none --config curt.toml"
)]
pub(super) struct Region {
    #[command(flatten)]
    config: ConfigArgs,

    /// The node
    #[arg(value_name = "NODE")]
    node: u32,

    /// The region of its leader, as the setting `region` of servers there has it
    #[arg(value_name = "REGION", required_unless_present = "none")]
    region: Option<String>,

    /// In no region
    #[arg(long, conflicts_with = "region")]
    none: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Region {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let stores = ShardStores::open(&config, "curt shards region", Access::Server)?;
            let (node, region) = (NodeIndex(self.node), self.region.as_deref());
            let assigned = assign_region(&*stores.maps, node, region).await;
            stores.engines.close().await;
            assigned?;
            match (self.json, region) {
                (true, _) => println!("{}", json!({ "node": self.node, "region": region })),
                (false, Some(region)) => println!("node {}: region {region}", self.node),
                (false, None) => println!("node {}: no region", self.node),
            }
            Ok(())
        })
    }
}
