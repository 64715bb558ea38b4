use curt_adapter_kit::address::{Address, Host};
use curt_adapter_kit::plain_text;
use curt_core::{ErrorKind, PortError, PortResult};
use rdkafka::ClientConfig;

use super::{BACKEND, HAS_TLS};

const PORT: u16 = 9092;
const PARAMETERS: [&str; 4] = ["group", "tls", "ca", "sasl"];
const GROUP: &str = "curt-clicks";
/// Kafka's own bound for the names of topics.
const TOPIC_BYTES_MAX: usize = 249;
/// Of the dead letters, behind the topic's name.
const DEAD_LETTERS: &str = ".dead-letters";
/// Of questions for flushes.
const FLUSHES: &str = ".flushes";

/// What an address says, ready to connect.
pub(super) struct Route {
    pub(super) topic: String,
    pub(super) dead_letters: String,
    pub(super) flushes: String,
    pub(super) group: String,
    config: ClientConfig,
}

impl Route {
    pub(super) fn parse(text: &str) -> PortResult<Self> {
        let address = Address::parse(text).map_err(invalid)?;
        address.refuse_unknown(&PARAMETERS).map_err(invalid)?;
        if address.scheme != "kafka" {
            return Err(invalid(format!("unknown scheme {:?}", address.scheme)));
        }
        let [topic] = address.path.as_slice() else {
            return Err(invalid(
                "name one topic after the hosts: kafka://h1,h2/url-access-events",
            ));
        };
        let group = address.parameter("group").unwrap_or(GROUP);
        if !is_name(topic) || topic.len() + DEAD_LETTERS.len() > TOPIC_BYTES_MAX || !is_name(group)
        {
            return Err(invalid(
                "topic and group have letters, digits, '.', '_' and '-', up to 236 of them",
            ));
        }
        let hosts = address.hosts.iter().map(|host| host.with_port(PORT));
        let mut config = ClientConfig::new();
        config.set(
            "bootstrap.servers",
            hosts.collect::<Vec<String>>().join(","),
        );
        set_security(&address, &mut config)?;
        Ok(Self {
            dead_letters: format!("{topic}{DEAD_LETTERS}"),
            flushes: format!("{topic}{FLUSHES}"),
            topic: topic.clone(),
            group: group.into(),
            config,
        })
    }

    /// What every client of this address has in common.
    pub(super) fn config(&self) -> ClientConfig {
        self.config.clone()
    }
}

fn set_security(address: &Address, config: &mut ClientConfig) -> PortResult<()> {
    let has_tls = set_tls(address, config)?;
    let has_account = set_account(address, config)?;
    let goes_elsewhere = |host: &Host| !plain_text::is_this_machine(&host.name);
    if !has_tls && address.hosts.iter().any(goes_elsewhere) {
        let hosts = address.hosts.iter().map(|host| host.name.as_str());
        plain_text::warn(BACKEND, &hosts.collect::<Vec<_>>().join(","));
    }
    let protocol = match (has_account, has_tls) {
        (false, false) => "PLAINTEXT",
        (false, true) => "SSL",
        (true, false) => "SASL_PLAINTEXT",
        (true, true) => "SASL_SSL",
    };
    config.set("security.protocol", protocol);
    Ok(())
}

/// Returns whether connections are encrypted. The library checks the certificate and the name in it.
fn set_tls(address: &Address, config: &mut ClientConfig) -> PortResult<bool> {
    let authority = address.parameter("ca");
    match address.parameter("tls") {
        None if authority.is_none() => return Ok(false),
        Some("false") if authority.is_none() => return Ok(false),
        None | Some("true") => require_openssl()?,
        Some(_) => return Err(invalid("tls is true or false, and true with ca")),
    }
    if let Some(path) = authority {
        // A wrong path must show at the start.
        std::fs::read(path).map_err(|error| {
            invalid("the authority's certificate that ca names cannot be read").with_source(error)
        })?;
        config.set("ssl.ca.location", path);
    }
    Ok(true)
}

/// Returns whether there is an account.
fn set_account(address: &Address, config: &mut ClientConfig) -> PortResult<bool> {
    let mechanism = address.parameter("sasl");
    let (user, password) = match (&address.user, &address.password) {
        (None, None) if mechanism.is_none() => return Ok(false),
        (None, None) => return Err(invalid("sasl takes user:password before the hosts")),
        (Some(user), Some(password)) => (user, password),
        _ => return Err(invalid("an account has a name and a password")),
    };
    let mechanism = match mechanism {
        None | Some("plain") => "PLAIN",
        Some("scram-sha-256") => "SCRAM-SHA-256",
        Some("scram-sha-512") => "SCRAM-SHA-512",
        Some(_) => return Err(invalid("sasl is plain, scram-sha-256 or scram-sha-512")),
    };
    if mechanism != "PLAIN" {
        require_openssl()?;
    }
    config
        .set("sasl.mechanisms", mechanism)
        .set("sasl.username", user)
        .set("sasl.password", password);
    Ok(true)
}

/// The library does TLS and SCRAM with OpenSSL. All else in curt has another TLS stack, which needs no system library.
fn require_openssl() -> PortResult<()> {
    match HAS_TLS {
        true => Ok(()),
        false => Err(invalid(
            "this build has no TLS and no SCRAM for Kafka: build it with the cargo feature \"kafka-tls\", or name a proxy \
             on this machine that does TLS (stunnel, HAProxy)",
        )),
    }
}

fn is_name(text: &str) -> bool {
    let is_fitting = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_fitting)
}

fn invalid(detail: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Invalid, BACKEND, "read the address", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_topic_group_and_account_are_read() {
        let route = Route::parse("kafka://h1,h2:7/url-access-events").unwrap();
        assert_eq!(route.topic, "url-access-events");
        assert_eq!(route.dead_letters, "url-access-events.dead-letters");
        assert_eq!(route.group, "curt-clicks");
        let config = route.config();
        assert_eq!(config.get("bootstrap.servers"), Some("h1:9092,h2:7"));
        assert_eq!(config.get("security.protocol"), Some("PLAINTEXT"));
        let route = Route::parse("kafka://me:p%2Fw@h/t?group=other").unwrap();
        let config = route.config();
        assert_eq!(route.group, "other");
        assert_eq!(config.get("sasl.password"), Some("p/w"));
        assert_eq!(config.get("sasl.mechanisms"), Some("PLAIN"));
        assert_eq!(config.get("security.protocol"), Some("SASL_PLAINTEXT"));
    }

    #[test]
    fn tls_and_scram_are_for_builds_that_have_them() {
        let parse = |more: &str| Route::parse(&format!("kafka://me:pw@h/t?{more}"));
        for (more, protocol, mechanism) in [
            ("tls=true", "SASL_SSL", "PLAIN"),
            ("tls=true&sasl=scram-sha-512", "SASL_SSL", "SCRAM-SHA-512"),
            ("sasl=scram-sha-256", "SASL_PLAINTEXT", "SCRAM-SHA-256"),
            ("ca=/dev/null", "SASL_SSL", "PLAIN"),
        ] {
            let read = parse(more).map(|route| {
                let config = route.config();
                let of = |name| config.get(name).unwrap_or_default().to_owned();
                (of("security.protocol"), of("sasl.mechanisms"))
            });
            let expected = (protocol.to_owned(), mechanism.to_owned());
            match read {
                Ok(read) => assert_eq!((read, HAS_TLS), (expected, true), "{more}"),
                Err(error) => {
                    let said = error.to_string();
                    assert_eq!(
                        (said.contains("\"kafka-tls\""), HAS_TLS),
                        (true, false),
                        "{said}"
                    );
                }
            }
        }
        let plain = parse("tls=false").unwrap();
        let protocol = plain.config();
        assert_eq!(protocol.get("security.protocol"), Some("SASL_PLAINTEXT"));
    }

    #[test]
    fn a_wrong_address_is_refused_without_showing_its_password() {
        for wrong in [
            "kafka://u:secret@h",
            "kafka://u:secret@h/a/b",
            "kafka://u:secret@h/a%20b",
            "kafka://u:secret@h/t?acks=1",
            "kafka://u:secret@h/t?sasl=kerberos",
            "kafka://u:secret@h/t?tls=yes",
            "kafka://u:secret@h/t?ca=/no/secret",
            "kafka://u:secret@h/t?tls=false&ca=/secret",
            "kafka://h/t?sasl=scram-sha-256",
            "kafka://:secret@h/t",
            "kafka://h/t?sasl=plain",
        ] {
            let Err(error) = Route::parse(wrong) else {
                panic!("{wrong} was taken");
            };
            assert_eq!(error.kind, ErrorKind::Invalid, "{wrong}");
            assert!(!format!("{error:?}").contains("secret"), "{wrong}: {error}");
        }
    }
}
