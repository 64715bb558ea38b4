//! Connections within what the system allows of open files.

use tracing::warn;

/// Files that are not for connections: databases, engines, the spool, the admin port. As many where there are enough,
const RESERVED: u64 = 1_024;
/// and no fewer where there are not.
const RESERVED_MIN: u64 = 128;
/// Served however few files there are.
const CONNECTIONS_MIN: u64 = 16;

/// Raises the limit of open files for so many connections and returns how many fit. The usual limit of 1,024 would be
/// met long before `server.connections_max`, and then by whatever opens a file next, such as the spool.
pub(crate) fn fit_connections(wanted: usize) -> usize {
    let files_wanted = (wanted as u64).saturating_add(RESERVED);
    let raised = rlimit::increase_nofile_limit(files_wanted).or_else(|error| {
        warn!(%error, "open files limit not raised");
        rlimit::getrlimit(rlimit::Resource::NOFILE).map(|(soft, _)| soft)
    });
    let Ok(limit) = raised else {
        return wanted;
    };
    let connections = within(limit, wanted);
    if connections < wanted {
        warn!(
            limit,
            needed = files_wanted,
            connections_max = connections,
            "open files limit lowers server.connections_max"
        );
    }
    connections
}

fn within(limit: u64, wanted: usize) -> usize {
    let reserved = (limit / 4).clamp(RESERVED_MIN, RESERVED);
    let room = limit.saturating_sub(reserved).max(CONNECTIONS_MIN);
    usize::try_from(room).unwrap_or(usize::MAX).min(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_for_what_is_no_connection() {
        for (limit, wanted, connections) in [
            (u64::MAX, 16_000, 16_000),
            (17_024, 16_000, 16_000),
            (16_000, 16_000, 14_976),
            (4_096, 16_000, 3_072),
            (1_024, 16_000, 768),
            (300, 16_000, 172),
            (300, 100, 100),
            (100, 16_000, 16),
        ] {
            assert_eq!(within(limit, wanted), connections, "{limit}");
        }
    }
}
