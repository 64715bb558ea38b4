//! Addresses of engines that run on several hosts: `scheme://user:password@host:port,host:port/path?name=value`.
//!
//! A URL parser knows one host only. Every part but the hosts is percent-decoded. Errors never repeat the address: it
//! may hold a password.

use std::fmt;

/// An address in its parts.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub scheme: String,
    pub user: Option<String>,
    pub password: Option<String>,
    pub hosts: Vec<Host>,
    /// The path's segments, empty ones left out.
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Without the brackets of an IPv6 address.
    pub name: String,
    pub port: Option<u16>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("scheme", &self.scheme)
            .field("hosts", &self.hosts)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or("an address begins with a scheme and ://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, hosts) = match authority.rsplit_once('@') {
            Some((account, hosts)) => (Some(account), hosts),
            None => (None, authority),
        };
        let (user, password) = match account.map(|account| account.split_once(':')) {
            None => (None, None),
            Some(None) => (account, None),
            Some(Some((user, password))) => (Some(user), Some(password)),
        };
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user: user
                .filter(|user| !user.is_empty())
                .map(decode)
                .transpose()?,
            password: password.map(decode).transpose()?,
            hosts: hosts
                .split(',')
                .map(Host::parse)
                .collect::<Result<_, _>>()?,
            path: path
                .split('/')
                .filter(|segment| !segment.is_empty())
                .map(decode)
                .collect::<Result<_, _>>()?,
            query: query
                .split('&')
                .filter(|pair| !pair.is_empty())
                .map(parse_pair)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Refuses parameters that the engine does not know: a misspelt one must not be ignored.
    pub fn refuse_unknown(&self, known: &[&str]) -> Result<(), String> {
        match self
            .query
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            None => Ok(()),
            Some((name, _)) => Err(format!("unknown parameter {name:?}: known are {known:?}")),
        }
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pair = self.query.iter().find(|(known, _)| known == name)?;
        Some(&pair.1)
    }
}

impl Host {
    fn parse(text: &str) -> Result<Self, String> {
        let bracketed = text
            .strip_prefix('[')
            .and_then(|text| text.split_once(']'))
            .map(|(name, rest)| (name, rest.strip_prefix(':')));
        let (name, port) = match bracketed {
            Some(parts) => parts,
            None => text
                .split_once(':')
                .map_or((text, None), |(name, port)| (name, Some(port))),
        };
        if name.is_empty() {
            return Err("a host is missing".into());
        }
        let port = port
            // Not repeated: where the host was left out, it is a password.
            .map(|port| {
                port.parse()
                    .map_err(|_| "the port after a host is no number".to_owned())
            })
            .transpose()?;
        Ok(Self {
            name: name.into(),
            port,
        })
    }

    #[must_use]
    pub fn port_or(&self, port: u16) -> u16 {
        self.port.unwrap_or(port)
    }

    /// With `port` where the address names none, in the form that connects.
    pub fn with_port(&self, port: u16) -> String {
        let port = self.port_or(port);
        if self.name.contains(':') {
            format!("[{}]:{port}", self.name)
        } else {
            format!("{}:{port}", self.name)
        }
    }
}

fn parse_pair(pair: &str) -> Result<(String, String), String> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    Ok((decode(name)?, decode(value)?))
}

fn decode(text: &str) -> Result<String, String> {
    const WRONG: &str = "a % in an address is followed by two hexadecimal digits of a UTF-8 text";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        // Checked before: a number may also have a sign.
        let digits = after
            .get(..2)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or(WRONG)?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| WRONG.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: Option<u16>) -> Host {
        let name = name.into();
        Host { name, port }
    }

    #[test]
    fn every_part_is_found() {
        let address =
            Address::parse("Redis+Sentinel://me:p%40ss:w@a:1,b,[::1]:3/main/2?x=1%2F2&y").unwrap();
        assert_eq!(address.scheme, "redis+sentinel");
        assert_eq!(address.user.as_deref(), Some("me"));
        assert_eq!(address.password.as_deref(), Some("p@ss:w"));
        let hosts = [host("a", Some(1)), host("b", None), host("::1", Some(3))];
        assert_eq!(address.hosts, hosts);
        assert_eq!(address.hosts[1].with_port(9), "b:9");
        assert_eq!(address.hosts[2].with_port(9), "[::1]:3");
        assert_eq!(address.path, ["main", "2"]);
        assert_eq!(address.parameter("x"), Some("1/2"));
        assert_eq!(address.parameter("y"), Some(""));
        assert_eq!(address.parameter("z"), None);
        assert!(address.refuse_unknown(&["x", "y"]).is_ok());
        assert!(
            address
                .refuse_unknown(&["x"])
                .unwrap_err()
                .contains("\"y\"")
        );
    }

    #[test]
    fn a_password_stands_alone_and_is_never_shown() {
        let address = Address::parse("redis://:secret@h").unwrap();
        assert_eq!(
            (address.user.as_deref(), address.password.as_deref()),
            (None, Some("secret"))
        );
        assert!(!format!("{address:?}").contains("secret"));
        for wrong in [
            "redis:secret@h",
            "redis://u:secret@",
            "redis://u:secret@h:port",
            "redis://u:secret@a,,b",
            "redis://u:secret%4@h",
            "redis://u:secret%zz@h",
            "redis://u:secret%ff@h",
            "redis://u:secret@h:99999",
        ] {
            let problem = Address::parse(wrong).unwrap_err();
            assert!(!problem.contains("secret"), "{wrong}: {problem}");
        }
    }

    #[test]
    fn mutated_addresses_are_exact_or_refused_without_their_secrets() {
        let samples = [
            "postgres://user:secret@a,b:5433/curt?sslmode=require",
            "redis://[::1]:6379/0",
            "zookeeper://z1,z2,z3/curt/%41",
            "s3://b?x=%20&y",
        ];
        let words = [
            "://", "@", ":", "%", "%zz", "%+1", "%ff", ",", "[", "]", "/", "?", "&", "=", "65536",
        ];
        curt_testkit::fuzz::Fuzz::new("addresses", samples)
            .with_words(words)
            .run_texts(|text| {
                let Ok(address) = Address::parse(text) else {
                    return false;
                };
                assert!(
                    !address.hosts.is_empty()
                        && address.hosts.iter().all(|host| !host.name.is_empty())
                );
                let (_, rest) = text.split_once("://").expect("a scheme");
                let (_, before_hosts) = rest.split_once('@').unwrap_or(("", ""));
                let decoded_part = before_hosts
                    .split_once(['/', '?'])
                    .map_or("", |(_, rest)| rest);
                for after in decoded_part.split('%').skip(1) {
                    let digits = after.as_bytes().get(..2).unwrap_or_default();
                    assert!(
                        digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit),
                        "{text:?}"
                    );
                }
                let shown = format!("{address:?}");
                let password = address.password.as_deref().unwrap_or_default();
                let is_secret =
                    password.len() > 5 && !text.replacen(password, "", 1).contains(password);
                assert!(!is_secret || !shown.contains(password), "{shown}");
                true
            });
    }
}
