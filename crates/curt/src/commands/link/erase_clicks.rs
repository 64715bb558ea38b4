//! `curt link erase-clicks`.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::input::parse_key;
use crate::commands::client::Client;

/// Requests in a row that may erase nothing without being complete. Each waits some seconds for the server's consumers.
const IDLE_MAX: usize = 6;

#[derive(Args, Debug)]
pub(super) struct EraseClicks {
    /// The link's key or short URL
    #[arg(value_parser = parse_key)]
    key: String,
    /// Also the link's totals, series, rankings and visitors; what its clicks added to those of all links and of tags stays
    #[arg(long)]
    counts: bool,
}

impl EraseClicks {
    /// Sends requests until nothing is left.
    pub(super) fn run(self, client: &Client) -> anyhow::Result<Value> {
        let query = [("counts", self.counts.to_string())];
        let (mut erased, mut idle) = (0, 0);
        loop {
            let answer = client.delete_with(&["links", &self.key, "clicks"], &query)?;
            let more = answer["erased"].as_u64().unwrap_or_default();
            erased += more;
            if answer["complete"] == true {
                let lag_max = &answer["lag_max_seconds"];
                return Ok(json!({ "erased": erased, "lag_max_seconds": lag_max }));
            }
            idle = if more == 0 { idle + 1 } else { 0 };
            if idle >= IDLE_MAX {
                bail!(
                    "erased {erased} clicks of {}, and the server cannot finish: it does not get its newest clicks written. \
                     /health/ready and the log say why; run the command again then",
                    self.key
                );
            }
            eprintln!("curt: {erased} clicks erased so far");
        }
    }
}
