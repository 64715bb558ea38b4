//! Many links, and many processes over the engines of a large installation.

mod balance;
mod caches;
mod cassandra;
mod copies;
mod crowd;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod faults;
mod fleet;
mod handover;
mod key_files;
mod kills;
mod life;
mod line;
mod links_faults;
mod plant;
mod pools;
mod rates;
mod refills;
mod refused;
mod regions;
mod returned;
mod routing;
mod shard_moves;
mod shards;
mod shared_quotas;
mod status;
mod store_copies;
mod ten_times;

pub(crate) use cassandra::settings as cassandra_settings;
#[cfg(feature = "dynamodb")]
pub(crate) use dynamodb::settings as dynamodb_settings;
