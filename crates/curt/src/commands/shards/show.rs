use clap::Args;
use curt_core::{NodeIndex, ShardId, ShardMap};
use curt_shards::{MoveRecord, MoverSettings};
use curt_sqlite::Access;
use serde_json::{Value, json};

use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::ShardStores;

/// Show the nodes in their order, how many shards each has, and a move that is under way
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt shards show --config curt.toml --json")]
pub(super) struct Show {
    #[command(flatten)]
    config: ConfigArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let stores = ShardStores::open(&config, "curt shards show", Access::Command)?;
            let known = curt_shards::known_nodes(&*stores.maps).await?;
            let regions = curt_shards::node_regions(&*stores.maps).await?;
            let map = stores.maps.load().await?;
            let mover = stores.mover(MoverSettings {
                items_per_second: None,
                holder: "curt shards show".into(),
                takeover_after: std::time::Duration::ZERO,
            });
            let unfinished = mover.unfinished().await?;
            let nodes: Vec<Value> = known
                .iter()
                .zip(&regions)
                .map(|((node, identity), region)| {
                    json!({
                        "node": node.0,
                        "address": stores.name(*node),
                        "identity": identity,
                        "region": region,
                        "shards": count_shards(&map, *node),
                    })
                })
                .collect();
            stores.engines.close().await;
            match self.json {
                true => {
                    let under_way = unfinished.as_ref().map(described);
                    let shown =
                        json!({ "version": map.version(), "nodes": nodes, "move": under_way });
                    println!("{shown}");
                }
                false => print_nodes(&map, &nodes, unfinished.as_ref()),
            }
            Ok(())
        })
    }
}

fn print_nodes(map: &ShardMap, nodes: &[Value], unfinished: Option<&MoveRecord>) {
    if nodes.is_empty() {
        println!(
            "there is no shard map: the first start of a server with several addresses in store.links makes it"
        );
        return;
    }
    println!("shard map, version {}", map.version());
    for node in nodes {
        let address = node["address"].as_str().unwrap_or("not in store.links");
        let region = node["region"].as_str();
        let region = region.map_or_else(String::new, |region| format!("region {region}, "));
        println!(
            "node {}: {} shards, {region}{address}",
            node["node"], node["shards"]
        );
    }
    if let Some(record) = unfinished {
        println!(
            "under way or unfinished: shard {} from node {} to {}, {}, {} links copied, by {}",
            record.shard.number(),
            record.from.0,
            record.to.0,
            record.phase.name(),
            record.copied,
            record.holder
        );
    }
}

fn described(record: &MoveRecord) -> Value {
    json!({
        "shard": record.shard.number(),
        "from": record.from.0,
        "to": record.to.0,
        "phase": record.phase.name(),
        "copied": record.copied,
        "holder": &*record.holder,
    })
}

fn count_shards(map: &ShardMap, node: NodeIndex) -> usize {
    ShardId::all()
        .filter(|shard| map.node(*shard) == node)
        .count()
}
