//! The nodes of a links database that has several: which has what, and moves between them.

mod region;
mod run;
mod show;

use clap::{Args, Subcommand};
use curt_core::{NodeIndex, ShardId};
use curt_shards::{PlannedMove, add_nodes, plan_drain, plan_rebalance};
use curt_sqlite::Access;
use serde_json::json;

use self::run::{Moves, Work};
use crate::cli::ConfigArgs;
use crate::commands::block_on;
use crate::config::Config;
use crate::wiring::ShardStores;

/// Show the nodes of a links database that has several, add nodes, and move shards between them
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt shards show --config curt.toml\n  curt shards add --config curt.toml        after its address was put at the end of store.links, and every server restarted\n  curt shards rebalance --config curt.toml"
)]
pub(crate) struct ShardsCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Show),
    Add(Add),
    Move(Move),
    Drain(Drain),
    Rebalance(Rebalance),
    Resume(Resume),
    Cancel(Cancel),
    Region(region::Region),
}

impl ShardsCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            Action::Show(show) => show.run(),
            Action::Add(add) => add.run(),
            Action::Move(one) => one.run(),
            Action::Drain(drain) => drain.run(),
            Action::Rebalance(rebalance) => rebalance.run(),
            Action::Resume(resume) => resume.run(),
            Action::Cancel(cancel) => cancel.run(),
            Action::Region(region) => region.run(),
        }
    }
}

/// Make the addresses at the end of store.links nodes; they must be empty, and get nothing before a rebalance
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt shards add --config curt.toml")]
struct Add {
    #[command(flatten)]
    config: ConfigArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Add {
    fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        block_on(async {
            let stores = ShardStores::open(&config, "curt shards add", Access::Server)?;
            let added = add_nodes(&stores.nodes, &*stores.maps, config.store.placement).await;
            let names = |node: &NodeIndex| json!({ "node": node.0, "address": stores.name(*node) });
            let added = added.map(|added| added.iter().map(names).collect::<Vec<_>>());
            stores.engines.close().await;
            let added = added?;
            match (self.json, added.len()) {
                (true, _) => println!("{}", json!({ "added": added })),
                (false, 0) => println!("every address of store.links is a node already"),
                (false, count) => {
                    println!(
                        "nodes added: {count}; `curt shards rebalance` gives them their share"
                    );
                }
            }
            Ok(())
        })
    }
}

/// Move one shard to a node while links are read and written
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt shards move 17 --to 3 --config curt.toml")]
struct Move {
    #[command(flatten)]
    moves: Moves,

    /// The shard, 0 to 1023
    #[arg(value_name = "SHARD", value_parser = clap::value_parser!(u16).range(0..=1023))]
    shard: u16,

    /// The node that is to have it
    #[arg(long, value_name = "NODE")]
    to: u32,
}

impl Move {
    fn run(self) -> anyhow::Result<()> {
        let (shard, to) = (ShardId::new(self.shard), NodeIndex(self.to));
        self.moves.run(move |stores| {
            let shard = shard.ok_or_else(|| anyhow::anyhow!("there is no such shard"))?;
            let from = stores.map.node(shard);
            Ok(Work::Moves(vec![PlannedMove { shard, from, to }]))
        })
    }
}

/// Move everything away from a node, so that it can be switched off
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt shards drain 2 --config curt.toml")]
struct Drain {
    #[command(flatten)]
    moves: Moves,

    /// The node
    #[arg(value_name = "NODE")]
    node: u32,
}

impl Drain {
    fn run(self) -> anyhow::Result<()> {
        let node = NodeIndex(self.node);
        self.moves.run(move |stores| {
            let others: Vec<NodeIndex> = stores
                .nodes
                .iter()
                .copied()
                .filter(|other| *other != node)
                .collect();
            let moves = plan_drain(&stores.map, node, &others, stores.placement);
            Ok(Work::Moves(moves.ok_or_else(|| {
                anyhow::anyhow!("there is no other node")
            })?))
        })
    }
}

/// Move shards until every node has its share by links.placement
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt shards rebalance --dry-run --config curt.toml\n  curt shards rebalance --rate 5000 --config curt.toml"
)]
struct Rebalance {
    #[command(flatten)]
    moves: Moves,
}

impl Rebalance {
    fn run(self) -> anyhow::Result<()> {
        self.moves.run(|stores| {
            let moves = plan_rebalance(&stores.map, &stores.nodes, stores.placement);
            Ok(Work::Moves(moves.ok_or_else(|| {
                anyhow::anyhow!("there are more nodes than shards")
            })?))
        })
    }
}

/// Go on with a move whose mover died or was stopped
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt shards resume --config curt.toml")]
struct Resume {
    #[command(flatten)]
    moves: Moves,
}

impl Resume {
    fn run(self) -> anyhow::Result<()> {
        self.moves.run(|_| Ok(Work::Resume))
    }
}

/// Take back a move whose mover died or was stopped
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt shards cancel --config curt.toml")]
struct Cancel {
    #[command(flatten)]
    moves: Moves,
}

impl Cancel {
    fn run(self) -> anyhow::Result<()> {
        self.moves.run(|_| Ok(Work::Cancel))
    }
}
