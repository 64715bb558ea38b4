use curt_adapter_kit::address::Address;
use curt_core::{ErrorKind, PortError, PortResult};
use rdkafka::ClientConfig;

use super::BACKEND;

const PORT: u16 = 9092;
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
        let known = ["group", "tls", "ca", "sasl"];
        address.refuse_unknown(&known).map_err(invalid)?;
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
    let has_tls = match address.parameter("tls") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(invalid("tls is true or false")),
    };
    if let Some(file) = address.parameter("ca") {
        if !has_tls {
            return Err(invalid("ca names certificates for tls=true"));
        }
        config.set("ssl.ca.location", file);
    }
    let has_account = match (&address.user, &address.password) {
        (Some(user), Some(password)) => {
            let mechanism = match address.parameter("sasl") {
                None | Some("plain") => "PLAIN",
                Some("scram-sha-256") => "SCRAM-SHA-256",
                Some("scram-sha-512") => "SCRAM-SHA-512",
                Some(_) => return Err(invalid("sasl is plain, scram-sha-256 or scram-sha-512")),
            };
            require_tls_build(mechanism != "PLAIN", "SCRAM")?;
            config
                .set("sasl.mechanisms", mechanism)
                .set("sasl.username", user)
                .set("sasl.password", password);
            true
        }
        (None, None) if address.parameter("sasl").is_none() => false,
        (None, None) => return Err(invalid("sasl takes user:password before the hosts")),
        _ => return Err(invalid("an account has a name and a password")),
    };
    require_tls_build(has_tls, "TLS")?;
    let protocol = match (has_account, has_tls) {
        (false, false) => "PLAINTEXT",
        (false, true) => "SSL",
        (true, false) => "SASL_PLAINTEXT",
        (true, true) => "SASL_SSL",
    };
    config.set("security.protocol", protocol);
    Ok(())
}

/// OpenSSL is more than a C compiler, so the default build is without.
fn require_tls_build(is_wanted: bool, what: &str) -> PortResult<()> {
    if is_wanted && !cfg!(feature = "tls") {
        return Err(invalid(format!(
            "this build has no {what} for Kafka: build it with the cargo feature \"kafka-tls\", which takes OpenSSL"
        )));
    }
    Ok(())
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
    fn a_wrong_address_is_refused_without_showing_its_password() {
        for wrong in [
            "kafka://u:secret@h",
            "kafka://u:secret@h/a/b",
            "kafka://u:secret@h/a%20b",
            "kafka://u:secret@h/t?acks=1",
            "kafka://u:secret@h/t?sasl=kerberos",
            "kafka://u:secret@h/t?tls=maybe",
            "kafka://u:secret@h/t?ca=/secret",
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

    #[cfg(not(feature = "tls"))]
    #[test]
    fn a_build_without_tls_says_so() {
        for wanted in ["kafka://h/t?tls=true", "kafka://u:p@h/t?sasl=scram-sha-256"] {
            let error = Route::parse(wanted).err().unwrap();
            assert!(error.detail.contains("kafka-tls"), "{error}");
        }
    }
}
