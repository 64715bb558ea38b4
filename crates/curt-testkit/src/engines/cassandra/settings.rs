use std::net::Ipv4Addr;
use std::path::Path;

use super::{Ports, host};

/// Without it, it prints every detail.
pub(super) const LOGGING: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %-5level %msg%n%ex{3}</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"#;

/// The configuration of a node that keeps its data in `folder`. The first node is the one that others ask for the rest.
pub(super) fn of_node(own: Ipv4Addr, ports: &Ports, folder: &Path) -> String {
    let Ports { client, storage } = ports;
    let first = host(0);
    let folder = folder.display();
    format!(
        r#"cluster_name: curt
num_tokens: 4
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 2000ms
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "{first}:{storage}"
listen_address: {own}
rpc_address: {own}
native_transport_port: {client}
storage_port: {storage}
data_file_directories: ["{folder}/data"]
commitlog_directory: "{folder}/commitlog"
hints_directory: "{folder}/hints"
saved_caches_directory: "{folder}/saved"
cdc_raw_directory: "{folder}/cdc"
memtable_heap_space: 64MiB
memtable_offheap_space: 32MiB
file_cache_size: 32MiB
networking_cache_size: 16MiB
authenticator: AllowAllAuthenticator
authorizer: AllowAllAuthorizer
"#
    )
}
