use clap::Args;
use curt_accounts::AccountServices;
use curt_core::limits::PAGE_ACCOUNTS_MAX;
use curt_core::ports::AuditEntry;

use super::{accounts, terminal};
use crate::cli::ConfigArgs;
use crate::wiring;

/// Print who did what that touches security, newest first
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  curt audit --limit 20")]
pub(crate) struct Audit {
    #[command(flatten)]
    config: ConfigArgs,

    /// How many entries at most
    #[arg(long, default_value_t = 50)]
    limit: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        accounts::run(&self.config, async |services, _| {
            let entries = newest(services, self.limit).await?;
            if self.json {
                print_json(&entries)
            } else {
                print_table(&entries);
                Ok(())
            }
        })
    }
}

async fn newest(
    services: &AccountServices,
    limit: usize,
) -> anyhow::Result<Vec<(u64, AuditEntry)>> {
    let mut entries: Vec<(u64, AuditEntry)> = Vec::new();
    while entries.len() < limit {
        let before = entries.last().map(|(number, _)| *number);
        let wanted = (limit - entries.len()).min(PAGE_ACCOUNTS_MAX);
        let page = services.audit.list(before, wanted).await?;
        if page.is_empty() {
            break;
        }
        entries.extend(page);
    }
    Ok(entries)
}

fn print_json(entries: &[(u64, AuditEntry)]) -> anyhow::Result<()> {
    let rows: Vec<_> = entries
        .iter()
        .map(|(number, entry)| {
            serde_json::json!({
                "number": number, "at": wiring::rfc3339(entry.at),
                // As text: the number has more digits than a JSON number holds everywhere.
                "actor_id": entry.actor.map(|actor| actor.to_string()),
                "action": entry.action, "subject": entry.subject, "address": entry.address,
            })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&rows)?);
    Ok(())
}

fn print_table(entries: &[(u64, AuditEntry)]) {
    let mut table = terminal::table(["at", "action", "subject", "actor", "address"]);
    for (_, entry) in entries {
        let actor = entry.actor.map(|actor| actor.to_string());
        table.add_row([
            wiring::rfc3339(entry.at),
            entry.action.to_string(),
            // Somebody may have typed it: a terminal must not obey it.
            entry.subject.escape_debug().to_string(),
            actor.unwrap_or_else(|| "-".to_owned()),
            entry.address.as_deref().unwrap_or("-").to_owned(),
        ]);
    }
    println!("{table}");
}
