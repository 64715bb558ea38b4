//! Many links, and many processes over the engines of a large installation.

mod cassandra;
mod copies;
mod crowd;
mod faults;
mod handover;
mod key_files;
mod kills;
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
mod status;
mod store_copies;
mod ten_times;

pub(crate) use cassandra::settings as cassandra_settings;
