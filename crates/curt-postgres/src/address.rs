//! `postgres://user:password@h1:5432,h2:5433/database?sslmode=require&sslrootcert=ca.pem&regions=eu,us&sharding=engine`
//!
//! A connection is encrypted if `sslmode=require` or a root certificate says so; then certificate and name are checked.
//! Without either it is plain text, which takes no password to another machine unless `sslmode=disable` allows it.

use std::fmt;
use std::path::PathBuf;

use curt_core::{ErrorKind, PortError, PortResult};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::failure::BACKEND;
use curt_adapter_kit::plain_text;

const OP: &str = "read the address";

/// Where a PostgreSQL is and how to talk to it.
#[derive(Clone)]
pub(super) struct Address {
    /// One per host, in the order in which they are tried. Never empty.
    pub(super) hosts: Vec<Config>,
    pub(super) encrypted: bool,
    /// A file of trusted certificates; `None`: those of the system.
    pub(super) roots: Option<PathBuf>,
    /// The region of each host; empty: the address does not say.
    pub(super) regions: Vec<Box<str>>,
    /// Whether the engine spreads tables over servers of its own.
    pub(super) is_distributed: bool,
    label: String,
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl Address {
    pub(super) fn parse(text: &str) -> PortResult<Self> {
        let Split {
            rest,
            encrypted: said,
            roots,
            regions,
            is_distributed,
        } = split(text)?;
        let is_said = said.is_some();
        // Whoever names a certificate to trust wants it to be checked.
        let encrypted = said.unwrap_or(roots.is_some());
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            let example = "write postgres://user:password@host:5432/database";
            invalid(format!("it is not an address of PostgreSQL: {example}")).with_source(error)
        })?;
        // Encryption that a man in the middle can turn off is none.
        config.ssl_mode(if encrypted {
            SslMode::Require
        } else {
            SslMode::Disable
        });
        if config.get_application_name().is_none() {
            config.application_name("curt");
        }
        let hosts = one_per_host(&config)?;
        if !regions.is_empty() && regions.len() != hosts.len() {
            return Err(invalid(
                "regions= names a region for each host, in the order of the hosts",
            ));
        }
        if !encrypted && goes_elsewhere(&config) {
            if !is_said && config.get_password().is_some() {
                return Err(invalid(
                    "the password would cross the network in clear text: add sslmode=require (and sslrootcert=FILE for an \
                     authority of your own), or allow it with sslmode=disable",
                ));
            }
            plain_text::warn(BACKEND, &label(&config));
        }
        Ok(Self {
            label: label(&config),
            hosts,
            encrypted,
            roots,
            regions,
            is_distributed,
        })
    }
}

/// An address without the options that only we know.
struct Split {
    rest: String,
    /// `None`: the address does not say.
    encrypted: Option<bool>,
    roots: Option<PathBuf>,
    regions: Vec<Box<str>>,
    is_distributed: bool,
}

fn split(text: &str) -> PortResult<Split> {
    let (base, options) = text.split_once('?').unwrap_or((text, ""));
    let mut kept = Vec::new();
    let (mut encrypted, mut roots) = (None, None);
    let (mut regions, mut is_distributed) = (Vec::new(), false);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("sslmode", "disable")) => encrypted = Some(false),
            // Whoever asks for encryption gets a check of the certificate and its name with it.
            Some(("sslmode", "require" | "verify-full")) => encrypted = Some(true),
            Some(("sslmode", other)) => {
                return Err(invalid(format!(
                    "sslmode={other} is not served: use disable, or require, which also checks the certificate"
                )));
            }
            Some(("sslrootcert", path)) => roots = Some(PathBuf::from(path)),
            Some(("regions", names)) => regions = names.split(',').map(Into::into).collect(),
            Some(("sharding", "engine")) => is_distributed = true,
            Some(("sharding", other)) => {
                return Err(invalid(format!(
                    "sharding={other} is not served: use engine, or name several addresses"
                )));
            }
            _ => kept.push(option),
        }
    }
    Ok(Split {
        rest: format!("{base}?{}", kept.join("&")),
        encrypted,
        roots,
        regions,
        is_distributed,
    })
}

/// Each host with the port and the numeric address that belong to it.
fn one_per_host(config: &Config) -> PortResult<Vec<Config>> {
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    if hosts.is_empty() || !config.get_hostaddrs().is_empty() {
        return Err(invalid("it must name a host, and may not use hostaddr"));
    }
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err(invalid("it names more ports than hosts"));
    }
    let alone = |(n, host): (usize, &Host)| {
        let mut one = Config::new();
        match host {
            Host::Tcp(name) => one.host(name),
            Host::Unix(folder) => one.host_path(folder),
        };
        if let Some(port) = ports.get(n).or_else(|| ports.first()) {
            one.port(*port);
        }
        copy_session(config, &mut one);
        one
    };
    Ok(hosts.iter().enumerate().map(alone).collect())
}

/// What is the same on every host.
fn copy_session(from: &Config, to: &mut Config) {
    to.ssl_mode(from.get_ssl_mode())
        .target_session_attrs(from.get_target_session_attrs());
    if let Some(user) = from.get_user() {
        to.user(user);
    }
    if let Some(password) = from.get_password() {
        to.password(password);
    }
    if let Some(database) = from.get_dbname() {
        to.dbname(database);
    }
    if let Some(options) = from.get_options() {
        to.options(options);
    }
    if let Some(name) = from.get_application_name() {
        to.application_name(name);
    }
}

fn goes_elsewhere(config: &Config) -> bool {
    config.get_hosts().iter().any(|host| match host {
        Host::Tcp(name) => !plain_text::is_this_machine(name),
        Host::Unix(_) => false,
    })
}

fn label(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(n, host)| {
            let ports = config.get_ports();
            let port = ports.get(n).or_else(|| ports.first()).unwrap_or(&5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(folder) => folder.display().to_string(),
            }
        })
        .collect();
    format!(
        "{}/{}",
        hosts.join(","),
        config.get_dbname().unwrap_or_default()
    )
}

fn invalid(detail: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, OP, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_keeps_its_port_and_nothing_shows_the_password() {
        let text =
            "postgres://curt:hush@h1:5001,h2:5002/keys?sslmode=require&sslrootcert=/etc/ca.pem";
        let address = Address::parse(text).unwrap();
        assert_eq!(address.to_string(), "h1:5001,h2:5002/keys");
        assert!(!format!("{address:?}").contains("hush"));
        assert!(address.encrypted);
        assert_eq!(address.roots, Some(PathBuf::from("/etc/ca.pem")));
        let ports: Vec<_> = address
            .hosts
            .iter()
            .map(|host| (host.get_hosts().len(), host.get_ports()[0]))
            .collect();
        assert_eq!(ports, [(1, 5001), (1, 5002)]);
        for host in &address.hosts {
            assert_eq!(host.get_password(), Some(&b"hush"[..]));
            assert_eq!(host.get_ssl_mode(), SslMode::Require);
        }
    }

    #[test]
    fn a_root_certificate_means_encryption_unless_the_address_says_otherwise() {
        for (options, encrypted) in [
            ("sslrootcert=/etc/ca.pem", true),
            ("sslrootcert=/etc/ca.pem&sslmode=verify-full", true),
            ("sslmode=require", true),
            ("sslmode=disable&sslrootcert=/etc/ca.pem", false),
            ("sslmode=disable", false),
        ] {
            let address = Address::parse(&format!("postgres://u:hush@db.example/x?{options}"));
            let address = address.unwrap();
            assert_eq!(address.encrypted, encrypted, "{options}");
            let mode = address.hosts[0].get_ssl_mode();
            assert_eq!(mode == SslMode::Require, encrypted, "{options}");
        }
    }

    #[test]
    fn a_password_does_not_go_to_another_machine_in_clear_text_by_accident() {
        for hosts in [
            "db.example",
            "192.0.2.7",
            "localhost,db.example",
            "[2001:db8::1]",
        ] {
            let problem = Address::parse(&format!("postgres://u:hush@{hosts}/x")).unwrap_err();
            let text = format!("{problem} {problem:?}");
            assert!(text.contains("sslmode=require"), "{hosts}: {text}");
            assert!(!text.contains("hush"), "{hosts}: {text}");
            assert!(Address::parse(&format!("postgres://u@{hosts}/x")).is_ok());
            let allowed = format!("postgres://u:hush@{hosts}/x?sslmode=disable");
            assert!(!Address::parse(&allowed).unwrap().encrypted);
        }
        for here in [
            "localhost",
            "127.0.0.1",
            "127.8.8.8",
            "[::1]",
            "%2Frun%2Fpg",
        ] {
            let address = Address::parse(&format!("postgres://u:hush@{here}/x"));
            assert!(!address.unwrap().encrypted, "{here}");
        }
    }

    #[test]
    fn a_wrong_address_says_what_is_right() {
        for (text, part) in [
            ("postgres://h/db?sslmode=prefer", "use disable, or require"),
            ("postgres://h:port/db", "not an address"),
            ("postgres://h/db?colour=red", "not an address"),
            ("postgres:///db", "name a host"),
            ("postgres://a,b/db?regions=eu", "a region for each host"),
            ("postgres://h/db?sharding=client", "use engine"),
        ] {
            let problem = Address::parse(text).unwrap_err();
            assert_eq!(problem.kind, ErrorKind::Invalid, "{text}");
            assert!(problem.to_string().contains(part), "{text}: {problem}");
        }
    }
}
