use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::engines::Port;

/// Without it, every error is silent.
const LOGGING: &str = "\
log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m%n
";

#[derive(Debug)]
pub(super) struct Ports {
    pub(super) name: Port,
    pub(super) page: Port,
    data: Port,
    data_calls: Port,
    data_page: Port,
}

impl Ports {
    pub(super) fn free() -> Result<Self> {
        Ok(Self {
            name: Port::free()?,
            page: Port::free()?,
            data: Port::free()?,
            data_calls: Port::free()?,
            data_page: Port::free()?,
        })
    }
}

/// Writes the configuration of either node, which keeps its data in `folder`, to `conf` there.
pub(super) fn write(folder: &Path, ports: &Ports) -> Result<()> {
    let conf = folder.join("conf");
    // The jars lack the pages that it looks for, and it ends without these folders.
    for pages in ["hdfs", "datanode", "static"] {
        fs::create_dir_all(conf.join("webapps").join(pages))?;
    }
    let shown = folder.display();
    let local = |port: &Port| port.address().to_string();
    let core = [
        ("fs.defaultFS", format!("hdfs://{}", ports.name.address())),
        ("hadoop.tmp.dir", format!("{shown}/tmp")),
    ];
    let hdfs = [
        ("dfs.replication", "1".to_owned()),
        ("dfs.permissions.enabled", "false".to_owned()),
        ("dfs.namenode.name.dir", format!("file://{shown}/names")),
        ("dfs.namenode.http-address", local(&ports.page)),
        ("dfs.namenode.safemode.extension", "0".to_owned()),
        (
            "dfs.namenode.datanode.registration.ip-hostname-check",
            "false".to_owned(),
        ),
        ("dfs.datanode.data.dir", format!("file://{shown}/data")),
        ("dfs.datanode.hostname", "127.0.0.1".to_owned()),
        ("dfs.datanode.address", local(&ports.data)),
        ("dfs.datanode.ipc.address", local(&ports.data_calls)),
        ("dfs.datanode.http.address", local(&ports.data_page)),
    ];
    fs::write(conf.join("core-site.xml"), xml(&core))?;
    fs::write(conf.join("hdfs-site.xml"), xml(&hdfs))?;
    Ok(fs::write(conf.join("log4j.properties"), LOGGING)?)
}

fn xml(settings: &[(&str, String)]) -> String {
    let properties: String = settings
        .iter()
        .map(|(name, value)| {
            format!("  <property><name>{name}</name><value>{value}</value></property>\n")
        })
        .collect();
    format!("<configuration>\n{properties}</configuration>\n")
}
