use std::fmt;

use curt_adapter_kit::address::{Address, Host};
use curt_adapter_kit::plain_text;
use curt_core::{ErrorKind, PortError, PortResult};

use crate::failure::BACKEND;

const PORT: u16 = 9042;
const NAME_BYTES_MAX: usize = 48;
const NAMESPACE_BYTES_MAX: usize = 64;

/// What an address says, ready to connect.
#[derive(Clone)]
pub(crate) struct Route {
    /// `h1:9042`, each.
    pub(crate) hosts: Vec<String>,
    pub(crate) account: Option<(String, String)>,
    pub(crate) keyspace: String,
    pub(crate) namespace: String,
    /// The data centre whose nodes are asked.
    pub(crate) datacenter: Option<String>,
}

impl Route {
    pub(crate) fn parse(text: &str) -> PortResult<Self> {
        let address = Address::parse(text).map_err(invalid)?;
        address
            .refuse_unknown(&["namespace", "datacenter", "sslmode", "sslrootcert"])
            .map_err(invalid)?;
        if address.scheme != "cassandra" {
            return Err(invalid(format!("unknown scheme {:?}", address.scheme)));
        }
        let account = match (&address.user, &address.password) {
            (None, None) => None,
            (Some(user), Some(password)) => Some((user.clone(), password.clone())),
            _ => return Err(invalid("an account has a name and a password")),
        };
        check_encryption(&address)?;
        let [keyspace] = &address.path[..] else {
            return Err(invalid("it names one keyspace: cassandra://h1,h2/keyspace"));
        };
        if !is_keyspace(keyspace) {
            return Err(invalid(format!(
                "{keyspace:?} is not the name of a keyspace: a lower-case letter, then letters, digits and _, \
                 {NAME_BYTES_MAX} at most"
            )));
        }
        let namespace = address.parameter("namespace").unwrap_or_default();
        if namespace.len() > NAMESPACE_BYTES_MAX {
            return Err(invalid(format!(
                "the namespace is longer than {NAMESPACE_BYTES_MAX} bytes"
            )));
        }
        Ok(Self {
            hosts: address
                .hosts
                .iter()
                .map(|host| host.with_port(PORT))
                .collect(),
            account,
            keyspace: keyspace.clone(),
            namespace: namespace.to_owned(),
            datacenter: address.parameter("datacenter").map(str::to_owned),
        })
    }
}

/// Hosts and keyspace; nothing secret.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.hosts.join(","), self.keyspace)
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Route({self})")
    }
}

/// Refuses what would be sent in clear text against the operator's will. The driver does TLS with OpenSSL or with rustls
/// over aws-lc, and curt has one TLS stack, which is neither. A proxy on this machine would not do: the driver asks a
/// node for the others, and connects to all.
fn check_encryption(address: &Address) -> PortResult<()> {
    let is_plain = match (
        address.parameter("sslmode"),
        address.parameter("sslrootcert"),
    ) {
        (Some("disable"), _) => true,
        (None, None) => false,
        _ => {
            return Err(invalid(
                "this build speaks to Cassandra without TLS: use sslmode=disable over a network that encrypts (WireGuard)",
            ));
        }
    };
    let goes_elsewhere = |host: &Host| !plain_text::is_this_machine(&host.name);
    if !is_plain && address.password.is_some() && address.hosts.iter().any(goes_elsewhere) {
        return Err(invalid(
            "the password would cross the network in clear text: allow it with sslmode=disable, where the network encrypts",
        ));
    }
    Ok(())
}

/// Lower case alone: Cassandra folds names that are not quoted.
fn is_keyspace(name: &str) -> bool {
    let is_symbol = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(is_symbol)
}

fn invalid(detail: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, "read the address", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read() {
        let text =
            "cassandra://me:p%2Fw@a,b:7,[::1]/curt?namespace=blue&datacenter=eu&sslmode=disable";
        let route = Route::parse(text).unwrap();
        assert_eq!(route.hosts, ["a:9042", "b:7", "[::1]:9042"]);
        assert_eq!(route.account, Some(("me".to_owned(), "p/w".to_owned())));
        assert_eq!((&*route.keyspace, &*route.namespace), ("curt", "blue"));
        assert_eq!(route.datacenter.as_deref(), Some("eu"));
        let plain = Route::parse("cassandra://a/curt").unwrap();
        assert_eq!((&*plain.namespace, plain.datacenter), ("", None));
    }

    #[test]
    fn what_should_be_encrypted_is_refused_and_a_password_in_clear_text_is_asked_for() {
        for (address, is_taken) in [
            ("cassandra://u:secret@127.0.0.1,localhost/k", true),
            ("cassandra://u:secret@127.0.0.1,c2/k", false),
            ("cassandra://u:secret@c1,c2/k?sslmode=disable", true),
            ("cassandra://c1,c2/k", true),
            ("cassandra://c1/k?sslmode=require", false),
            ("cassandra://127.0.0.1/k?sslrootcert=ca.pem", false),
        ] {
            let route = Route::parse(address);
            assert_eq!(route.is_ok(), is_taken, "{address}: {route:?}");
            if let Err(error) = route {
                assert!(error.to_string().contains("sslmode=disable"), "{error}");
            }
        }
    }

    #[test]
    fn a_wrong_address_is_refused_without_showing_its_password() {
        for wrong in [
            "cassandra://u:secret@a",
            "cassandra://u:secret@a/",
            "cassandra://u:secret@a/k/l",
            "cassandra://u:secret@a/Upper",
            "cassandra://u:secret@a/1st",
            "cassandra://u:secret@a/a%22b",
            "cassandra://:secret@a/k",
            "cassandra://u:secret@a/k?consistency=one",
            "scylla://u:secret@a/k",
        ] {
            let error = Route::parse(wrong).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Invalid, "{wrong}");
            assert!(!format!("{error:?}").contains("secret"), "{wrong}: {error}");
        }
    }
}
