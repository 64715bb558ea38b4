use curt_core::PortResult;
use hdfs_native::{Client, ClientBuilder};

use super::{HdfsSettings, failure, operation};
use crate::key_layout::Operation;
use curt_adapter_kit::address::Address;

const NAME_NODE_PORT: u16 = 8020;
const PARAMETERS: [&str; 1] = ["conf"];
/// What the NameNodes of an address with several hosts are called together.
const NAME_SERVICE: &str = "curt";
/// Tries to find the NameNode that is active, besides the first. The deadline of a call ends them early.
const FAILOVERS_MAX: u32 = 8;
const FAILOVER_PAUSE_MILLIS: u32 = 100;
const FAILOVER_PAUSE_MILLIS_MAX: u32 = 1_000;

/// What an address says, ready to connect.
#[derive(Clone, Debug)]
pub(super) struct HdfsAddress {
    url: String,
    user: Option<String>,
    config_folder: Option<String>,
    config: Vec<(String, String)>,
    /// Absolute, without a slash at the end.
    pub(super) folder: String,
}

impl HdfsAddress {
    pub(super) fn parse(text: &str) -> PortResult<Self> {
        let invalid = |detail: String| operation("read the address").invalid(detail);
        let address = Address::parse(text).map_err(invalid)?;
        address.refuse_unknown(&PARAMETERS).map_err(invalid)?;
        if address.scheme != "hdfs" {
            return Err(invalid(format!("unknown scheme {:?}", address.scheme)));
        }
        if address.password.is_some() {
            let detail = "HDFS knows no passwords: name the user alone, or use Kerberos";
            return Err(invalid(detail.into()));
        }
        if address.path.is_empty() {
            let detail = "after the hosts stands the folder of the key files";
            return Err(invalid(detail.into()));
        }
        if address.path.iter().any(|part| !is_plain(part)) {
            let detail =
                "a part of the path is no name of a folder: \".\", \"..\", or with / or : in it";
            return Err(invalid(detail.into()));
        }
        let config_folder = address.parameter("conf").map(str::to_owned);
        let (url, config) = name_nodes(&address, config_folder.is_some());
        Ok(Self {
            url,
            user: address.user,
            config_folder,
            config,
            folder: format!("/{}", address.path.join("/")),
        })
    }

    /// A client that connects with its first call. Built on the runtime that will use it.
    pub(super) fn client(
        &self,
        settings: HdfsSettings,
        operation: Operation,
    ) -> PortResult<Client> {
        let socket_timeout = settings.transfer_timeout.as_millis().to_string();
        let settings = [
            (
                "dfs.client.failover.max.attempts",
                FAILOVERS_MAX.to_string(),
            ),
            (
                "dfs.client.failover.sleep.base.millis",
                FAILOVER_PAUSE_MILLIS.to_string(),
            ),
            (
                "dfs.client.failover.sleep.max.millis",
                FAILOVER_PAUSE_MILLIS_MAX.to_string(),
            ),
            ("dfs.client.socket-timeout", socket_timeout),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        let mut builder = ClientBuilder::new()
            .with_url(&self.url)
            .with_config(settings.into_iter().chain(self.config.iter().cloned()));
        if let Some(folder) = &self.config_folder {
            builder = builder.with_config_dir(folder);
        }
        if let Some(user) = &self.user {
            builder = builder.with_user(user);
        }
        builder
            .build()
            .map_err(|error| failure::of(operation, error))
    }
}

fn is_plain(part: &str) -> bool {
    !matches!(part, "." | "..") && !part.contains(['/', ':', '\0'])
}

/// Where the client begins: one NameNode by its address, several as a service of our own making, or a service that the
/// cluster's own configuration describes.
fn name_nodes(address: &Address, is_configured: bool) -> (String, Vec<(String, String)>) {
    match &address.hosts[..] {
        [service] if is_configured && service.port.is_none() => {
            (format!("hdfs://{}", service.name), Vec::new())
        }
        [host] => (
            format!("hdfs://{}", host.with_port(NAME_NODE_PORT)),
            Vec::new(),
        ),
        hosts => {
            let names: Vec<String> = (0..hosts.len())
                .map(|number| format!("n{number}"))
                .collect();
            let mut config = vec![(format!("dfs.ha.namenodes.{NAME_SERVICE}"), names.join(","))];
            for (name, host) in names.iter().zip(hosts) {
                let key = format!("dfs.namenode.rpc-address.{NAME_SERVICE}.{name}");
                config.push((key, host.with_port(NAME_NODE_PORT)));
            }
            (format!("hdfs://{NAME_SERVICE}"), config)
        }
    }
}

#[cfg(test)]
mod tests {
    use curt_core::ErrorKind;

    use super::*;

    #[test]
    fn one_name_node_has_a_port_a_user_and_a_folder() {
        let address = HdfsAddress::parse("hdfs://me@nn/apps/curt%20keys/").unwrap();
        assert_eq!(address.url, "hdfs://nn:8020");
        assert_eq!(address.user.as_deref(), Some("me"));
        assert_eq!(address.folder, "/apps/curt keys");
        assert_eq!(address.config, []);
    }

    #[test]
    fn several_name_nodes_are_one_service() {
        let address = HdfsAddress::parse("hdfs://a:9000,b/keys").unwrap();
        assert_eq!(address.url, "hdfs://curt");
        let config: Vec<(&str, &str)> = address
            .config
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let want = [
            ("dfs.ha.namenodes.curt", "n0,n1"),
            ("dfs.namenode.rpc-address.curt.n0", "a:9000"),
            ("dfs.namenode.rpc-address.curt.n1", "b:8020"),
        ];
        assert_eq!(config, want);
    }

    #[test]
    fn a_service_is_looked_up_in_the_clusters_configuration() {
        let address = HdfsAddress::parse("hdfs://prod/keys?conf=/etc/hadoop/conf").unwrap();
        assert_eq!(address.url, "hdfs://prod");
        assert_eq!(address.config_folder.as_deref(), Some("/etc/hadoop/conf"));
    }

    #[test]
    fn wrong_addresses_are_refused() {
        for wrong in [
            "hdfs://nn",
            "hdfs://nn/",
            "hdfs://nn/a/../b",
            "hdfs://nn/a%2Fb",
            "hdfs://me:secret@nn/keys",
            "hdfs://nn/keys?config=x",
            "s3://nn/keys",
        ] {
            let error = HdfsAddress::parse(wrong).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Invalid, "{wrong}");
            assert!(!format!("{error:?}").contains("secret"), "{wrong}");
        }
    }
}
