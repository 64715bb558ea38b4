use curt_core::{ErrorKind, PortError, PortResult};
use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, TlsCertificates};

use super::{BACKEND, failure};
use curt_adapter_kit::address::{Address, Host};
use curt_adapter_kit::plain_text;

pub(super) const SERVER_PORT: u16 = 6379;
pub(super) const SENTINEL_PORT: u16 = 26379;
const PARAMETERS: [&str; 4] = ["prefix", "ca", "sentinel_user", "sentinel_password"];

/// What an address says, ready to connect.
pub(super) struct Route {
    pub(super) prefix: Box<str>,
    pub(super) to: To,
    /// The account and the database on the servers.
    pub(super) server: RedisConnectionInfo,
    pub(super) tls: Option<TlsCertificates>,
}

/// How to find the primary.
pub(super) enum To {
    Server(Host),
    /// Ask the Sentinels.
    Primary {
        name: String,
        sentinels: Vec<Host>,
        /// The account on the Sentinels.
        account: RedisConnectionInfo,
    },
}

impl Route {
    pub(super) fn parse(text: &str) -> PortResult<Self> {
        let address = Address::parse(text).map_err(invalid)?;
        address.refuse_unknown(&PARAMETERS).map_err(invalid)?;
        let (has_tls, has_sentinels) = match &*address.scheme {
            "redis" => (false, false),
            "rediss" => (true, false),
            "redis+sentinel" => (false, true),
            "rediss+sentinel" => (true, true),
            scheme => return Err(invalid(format!("unknown scheme {scheme:?}"))),
        };
        let goes_elsewhere = |host: &Host| !plain_text::is_this_machine(&host.name);
        if !has_tls && address.hosts.iter().any(goes_elsewhere) {
            let hosts = address.hosts.iter().map(|host| host.name.as_str());
            plain_text::warn(BACKEND, &hosts.collect::<Vec<_>>().join(","));
        }
        let (to, database) = if has_sentinels {
            primary(&address)?
        } else {
            server(&address)?
        };
        let database = match database {
            None => 0,
            Some(number) => number
                .parse::<u16>()
                .map_err(|_| invalid("after the host stands the number of a database"))?,
        };
        let tls = if has_tls {
            // Another part of the process may have chosen already, and that is as good.
            rustls::crypto::ring::default_provider()
                .install_default()
                .ok();
            Some(certificates(&address)?)
        } else {
            None
        };
        Ok(Self {
            prefix: address.parameter("prefix").unwrap_or_default().into(),
            to,
            server: account(address.user.as_deref(), address.password.as_deref())
                .set_db(database.into()),
            tls,
        })
    }

    /// A client for one of the servers or Sentinels.
    pub(super) fn client(
        &self,
        host: &str,
        port: u16,
        account: &RedisConnectionInfo,
    ) -> PortResult<redis::Client> {
        let host = host.to_owned();
        let made = match &self.tls {
            None => ConnectionAddr::Tcp(host, port)
                .into_connection_info()
                .map(|info| info.set_redis_settings(account.clone()))
                .and_then(redis::Client::open),
            Some(certificates) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            }
            .into_connection_info()
            .map(|info| info.set_redis_settings(account.clone()))
            .and_then(|info| redis::Client::build_with_tls(info, certificates.clone())),
        };
        made.map_err(failure::of_connecting)
    }
}

/// The server and the database's number of `redis://host/number`.
fn server(address: &Address) -> PortResult<(To, Option<&String>)> {
    match (&address.hosts[..], &address.path[..]) {
        ([host], [] | [_]) => Ok((To::Server(host.clone()), address.path.first())),
        ([_], _) => Err(invalid("after the host stands the number of a database")),
        _ => Err(invalid(
            "several hosts are for Sentinels: redis+sentinel://host,host,host/name",
        )),
    }
}

/// The Sentinels and the database's number of `redis+sentinel://host,host,host/name/number`.
fn primary(address: &Address) -> PortResult<(To, Option<&String>)> {
    let ([name] | [name, _]) = &address.path[..] else {
        return Err(invalid(
            "after the Sentinels stands the primary's name, and a database's number if any",
        ));
    };
    let to = To::Primary {
        name: name.clone(),
        sentinels: address.hosts.clone(),
        account: account(
            address.parameter("sentinel_user"),
            address.parameter("sentinel_password"),
        ),
    };
    Ok((to, address.path.get(1)))
}

fn account(user: Option<&str>, password: Option<&str>) -> RedisConnectionInfo {
    let mut account = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(user) = user {
        account = account.set_username(user);
    }
    if let Some(password) = password {
        account = account.set_password(password);
    }
    account
}

/// The authority that the address names. Read once: a wrong path must show at the start.
fn certificates(address: &Address) -> PortResult<TlsCertificates> {
    let root_cert = match address.parameter("ca") {
        None => None,
        Some(path) => Some(std::fs::read(path).map_err(|error| {
            invalid(format!(
                "the authority's certificate {path:?} cannot be read"
            ))
            .with_source(error)
        })?),
    };
    Ok(TlsCertificates {
        client_tls: None,
        root_cert,
    })
}

fn invalid(detail: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, "read the address", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_an_account_a_database_and_a_prefix() {
        let route = Route::parse("redis://me:p%2Fw@h/3?prefix=curt:").unwrap();
        assert_eq!(&*route.prefix, "curt:");
        let server = &route.server;
        let account = (server.username(), server.password(), server.db());
        assert_eq!(account, (Some("me"), Some("p/w"), 3));
        let To::Server(host) = route.to else {
            panic!("no Sentinels were named");
        };
        assert_eq!((&*host.name, host.port_or(SERVER_PORT)), ("h", 6379));
    }

    #[test]
    fn sentinels_have_accounts_of_their_own() {
        let text = "redis+sentinel://:server@a,b:7,c/main/2?sentinel_user=s&sentinel_password=t";
        let route = Route::parse(text).unwrap();
        assert_eq!(
            (route.server.password(), route.server.db()),
            (Some("server"), 2)
        );
        let To::Primary {
            name,
            sentinels,
            account,
        } = route.to
        else {
            panic!("Sentinels were named");
        };
        assert_eq!(name, "main");
        let ports: Vec<u16> = sentinels
            .iter()
            .map(|host| host.port_or(SENTINEL_PORT))
            .collect();
        assert_eq!(ports, [26379, 7, 26379]);
        assert_eq!(
            (account.username(), account.password()),
            (Some("s"), Some("t"))
        );
    }

    #[test]
    fn a_wrong_address_is_refused_without_showing_its_password() {
        for wrong in [
            "redis://u:secret@h/x",
            "redis://u:secret@h/-1",
            "redis://u:secret@h/0/1",
            "redis://u:secret@a,b",
            "redis+sentinel://u:secret@a,b",
            "redis+sentinel://u:secret@a/name/0/1",
            "redis://u:secret@h?prefx=a",
            "rediss://u:secret@h?ca=/no/such/file",
            "memcached://u:secret@h",
        ] {
            let Err(error) = Route::parse(wrong) else {
                panic!("{wrong} was taken");
            };
            assert_eq!(error.kind, ErrorKind::Invalid, "{wrong}");
            assert!(
                !format!("{error}{error:?}").contains("secret"),
                "{wrong}: {error}"
            );
        }
    }
}
