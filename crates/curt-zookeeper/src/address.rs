use curt_core::{ErrorKind, PortError, PortResult};

use super::BACKEND;
use super::nodes::segment;
use curt_adapter_kit::address::Address;

const PORT: u16 = 2181;

/// What an address says, ready to connect.
pub(super) struct Route {
    /// `h1:2181,h2:2181`.
    pub(super) servers: String,
    /// `user:password`.
    pub(super) account: Option<String>,
    /// The path that everything lies below, without a slash at its end.
    pub(super) root: String,
}

impl Route {
    pub(super) fn parse(text: &str) -> PortResult<Self> {
        let address = Address::parse(text).map_err(invalid)?;
        address.refuse_unknown(&[]).map_err(invalid)?;
        if address.scheme != "zookeeper" {
            return Err(invalid(format!("unknown scheme {:?}", address.scheme)));
        }
        let account = match (&address.user, &address.password) {
            (None, None) => None,
            (Some(user), Some(password)) => Some(format!("{user}:{password}")),
            _ => return Err(invalid("an account has a name and a password")),
        };
        let servers: Vec<String> = address
            .hosts
            .iter()
            .map(|host| host.with_port(PORT))
            .collect();
        let root = address
            .path
            .iter()
            .map(|name| format!("/{}", segment(name)));
        Ok(Self {
            servers: servers.join(","),
            account,
            root: root.collect(),
        })
    }
}

fn invalid(detail: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, "read the address", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_account_and_path_are_read() {
        let route = Route::parse("zookeeper://me:p%2Fw@a,b:7/curt/one/").unwrap();
        assert_eq!(route.servers, "a:2181,b:7");
        assert_eq!(route.account.as_deref(), Some("me:p/w"));
        assert_eq!(route.root, "/curt/one");
        assert_eq!(Route::parse("zookeeper://a").unwrap().root, "");
    }

    #[test]
    fn a_wrong_address_is_refused_without_showing_its_password() {
        for wrong in [
            "zookeeper://:secret@a",
            "zookeeper://u:secret@a?timeout=3",
            "zk://u:secret@a",
            "zookeeper://u:secret@a:b",
        ] {
            let Err(error) = Route::parse(wrong) else {
                panic!("{wrong} was taken");
            };
            assert_eq!(error.kind, ErrorKind::Invalid, "{wrong}");
            assert!(!format!("{error:?}").contains("secret"), "{wrong}: {error}");
        }
    }
}
