use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engines::java;

const HEAP_MEBIBYTES: u32 = 512;
/// Parts of Java that it reaches into, and that Java must be told to let it.
const EXPORTS: [&str; 10] = [
    "java.base/jdk.internal.misc",
    "java.base/java.lang.ref",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.management/com.sun.jmx.remote.security",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.unsupported/sun.misc",
];
const OPENS: [&str; 15] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.compiler/com.sun.tools.javac",
    "jdk.management/com.sun.management.internal",
];

/// What a node runs on.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) java: PathBuf,
    pub(super) jars: String,
    /// Measures objects for it.
    pub(super) memory_agent: PathBuf,
    pub(super) is_alone: bool,
}

impl Machine {
    /// Starts a node on the configuration and the data in its folder.
    pub(super) fn command(&self, folder: &Path, administration: u16) -> Command {
        let mut command = java::command(&self.java, HEAP_MEBIBYTES, &self.jars);
        let shown = folder.display();
        command
            .arg(format!("-javaagent:{}", self.memory_agent.display()))
            .args(["-Xss256k", "-Djdk.attach.allowAttachSelf=true"])
            .arg("-Dio.netty.tryReflectionSetAccessible=true")
            .args(EXPORTS.map(|part| format!("--add-exports={part}=ALL-UNNAMED")))
            .args(OPENS.map(|part| format!("--add-opens={part}=ALL-UNNAMED")))
            .arg(format!("-Dcassandra.config=file://{shown}/cassandra.yaml"))
            .arg(format!("-Dcassandra.storagedir={shown}"))
            .arg(format!("-Dcassandra.logdir={shown}"))
            .arg(format!("-Dlogback.configurationFile={shown}/logback.xml"))
            .arg(format!("-Dcassandra.jmx.local.port={administration}"))
            .arg("-Dcassandra-foreground=yes")
            .args(self.haste())
            .arg("org.apache.cassandra.service.CassandraDaemon");
        command
    }

    /// It waits for news of others before it serves and before it joins: long in a data centre, hardly on one machine.
    fn haste(&self) -> [&'static str; 4] {
        let ring_delay = if self.is_alone {
            "-Dcassandra.ring_delay_ms=100"
        } else {
            "-Dcassandra.ring_delay_ms=2000"
        };
        [
            ring_delay,
            "-Dcassandra.consistent.rangemovement=false",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.superuser_setup_delay_ms=0",
        ]
    }
}
