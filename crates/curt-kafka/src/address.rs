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
        let known = ["group", "tls", "sasl"];
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

/// The library does TLS and SCRAM with OpenSSL, and curt has one TLS stack, which is another.
fn set_security(address: &Address, config: &mut ClientConfig) -> PortResult<()> {
    match address.parameter("tls") {
        None | Some("false") => {}
        Some(_) => {
            return Err(invalid(
                "this build speaks to Kafka without TLS: name a proxy on this machine that does it (stunnel, HAProxy)",
            ));
        }
    }
    let protocol = match (&address.user, &address.password, address.parameter("sasl")) {
        (None, None, None) => "PLAINTEXT",
        (None, None, Some(_)) => return Err(invalid("sasl takes user:password before the hosts")),
        (Some(user), Some(password), None | Some("plain")) => {
            config
                .set("sasl.mechanisms", "PLAIN")
                .set("sasl.username", user)
                .set("sasl.password", password);
            "SASL_PLAINTEXT"
        }
        (Some(_), Some(_), Some(_)) => return Err(invalid("this build knows sasl=plain alone")),
        _ => return Err(invalid("an account has a name and a password")),
    };
    config.set("security.protocol", protocol);
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
            "kafka://u:secret@h/t?tls=true",
            "kafka://u:secret@h/t?sasl=scram-sha-256",
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
}
