use std::num::NonZeroUsize;
use std::time::Duration;

/// How a Cassandra is used. The defaults suit a server; see each field for when to change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CassandraSettings {
    /// How many replicas take part in each read and in the commit of each write.
    pub consistency: ReplicaConsistency,
    /// Whose agreement a conditional write needs.
    pub serial: SerialScope,
    /// Connections to each node, and to each shard of a ScyllaDB node.
    pub connections: NonZeroUsize,
    pub connect_timeout: Duration,
    /// Longest time of a call that a request waits for. A bulk has as much for each 100 links.
    pub call_timeout: Duration,
    /// Longest time of lists, counts and upkeep.
    pub background_timeout: Duration,
    /// How old totals may become before links are counted again, in the background. Zero: with every question.
    pub totals_interval: Duration,
    /// Copies of a keyspace that `migrate` makes.
    pub replication: Replication,
}

impl Default for CassandraSettings {
    fn default() -> Self {
        Self {
            consistency: ReplicaConsistency::LocalQuorum,
            serial: SerialScope::All,
            connections: NonZeroUsize::new(2).unwrap_or(NonZeroUsize::MIN),
            connect_timeout: Duration::from_secs(2),
            call_timeout: Duration::from_millis(1_500),
            background_timeout: Duration::from_secs(6),
            totals_interval: Duration::from_secs(600),
            replication: Replication::Everywhere(1),
        }
    }
}

/// Levels at which a read sees every acknowledged write: the replicas of both overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaConsistency {
    /// A majority in the data centre of the node that is asked. Other data centres see the write a little later.
    LocalQuorum,
    /// A majority of all.
    Quorum,
    /// Every one: a single node that is away stops all of it.
    All,
}

/// Which replicas agree on a conditional write (K-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialScope {
    /// A majority of all data centres: an alias has one owner in the world.
    All,
    /// A majority of the local data centre: right only where all writes go through one.
    Local,
}

/// How many nodes have a copy of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replication {
    /// So many in every data centre.
    Everywhere(u32),
    /// So many in each named one.
    DataCentres(Vec<(String, u32)>),
}

impl Replication {
    /// Reads `3`, or `dc1:3,dc2:2`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let copies = |text: &str| match text.trim().parse() {
            Ok(copies @ 1..=99) => Ok(copies),
            _ => Err(format!(
                "{text:?} is no number of copies: write 3, or dc1:3,dc2:3"
            )),
        };
        if !text.contains(':') {
            return copies(text).map(Self::Everywhere);
        }
        let centre = |part: &str| {
            let (name, count) = part
                .split_once(':')
                .ok_or_else(|| format!("{part:?} has no number of copies: write dc1:3,dc2:3"))?;
            let name = name.trim();
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            match !name.is_empty() && name.bytes().all(is_name) {
                true => Ok((name.to_owned(), copies(count)?)),
                false => Err(format!("{name:?} is not the name of a data centre")),
            }
        };
        let centres: Result<_, String> = text.split(',').map(centre).collect();
        centres.map(Self::DataCentres)
    }

    /// As CQL has it.
    pub(crate) fn to_cql(&self) -> String {
        let class = "'class': 'NetworkTopologyStrategy'";
        match self {
            Self::Everywhere(copies) => format!("{{{class}, 'replication_factor': {copies}}}"),
            Self::DataCentres(centres) => {
                let centres = centres.iter();
                let named: Vec<String> = centres
                    .map(|(name, copies)| format!("'{name}': {copies}"))
                    .collect();
                format!("{{{class}, {}}}", named.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replication_is_a_number_or_one_per_data_centre() {
        let everywhere = Replication::parse("3").unwrap();
        assert_eq!(
            everywhere.to_cql(),
            "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"
        );
        let named = Replication::parse("eu-1:3, us_2:2").unwrap();
        assert_eq!(
            named.to_cql(),
            "{'class': 'NetworkTopologyStrategy', 'eu-1': 3, 'us_2': 2}"
        );
        for wrong in [
            "", "0", "100", "three", "dc1:", "dc1:0", "dc1:3,", ":3", "a'b:3",
        ] {
            assert!(Replication::parse(wrong).is_err(), "{wrong}");
        }
    }
}
