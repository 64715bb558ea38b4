//! Hosts that lead back to this service.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use url::{Host, Url};

/// A host that serves short links itself. Written with a port it means that port only, without one every port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnHost {
    place: Place,
    port: Option<u16>,
}

/// What a URL's host stands for, however it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// As a URL parser writes it: lower case, punycode, no trailing dot.
    Name(Box<str>),
    /// IPv4 where it is one, also as IPv6 writes it.
    Address(IpAddr),
}

impl Place {
    fn of(url: &Url) -> Option<Self> {
        Some(match url.host()? {
            Host::Ipv4(address) => Self::Address(address.into()),
            Host::Ipv6(address) => Self::Address(IpAddr::V6(address).to_canonical()),
            // `example.com` and `example.com.` are the same place.
            Host::Domain(name) => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                match name.parse::<IpAddr>() {
                    Ok(address) => Self::Address(address.to_canonical()),
                    Err(_) => Self::Name(name.into()),
                }
            }
        })
    }

    /// Whether it is the machine of whoever asks: `localhost`, 127.0.0.0/8 and `::1`, and the addresses of no machine,
    /// 0.0.0.0 and `::`, which connect to it as well.
    fn is_this_machine(&self) -> bool {
        match self {
            Self::Name(name) => &**name == "localhost" || name.ends_with(".localhost"),
            Self::Address(address) => address.is_loopback() || address.is_unspecified(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other || self.is_this_machine() && other.is_this_machine()
    }
}

impl OwnHost {
    /// Whether the URL leads there.
    #[must_use]
    pub fn is_host_of(&self, url: &Url) -> bool {
        let is_same = Place::of(url).is_some_and(|place| self.place.is_same(&place));
        is_same && (self.port.is_none() || self.port == url.port_or_known_default())
    }

    /// The same with a port, unless it has one; for a host of this machine alone, whose other ports are other services.
    #[must_use]
    pub fn or_port(mut self, port: Option<u16>) -> Self {
        if self.place.is_this_machine() {
            self.port = self.port.or(port);
        }
        self
    }
}

/// Where a server listens. A wildcard stands for the machine itself.
impl From<SocketAddr> for OwnHost {
    fn from(listener: SocketAddr) -> Self {
        Self {
            place: Place::Address(listener.ip().to_canonical()),
            port: Some(listener.port()),
        }
    }
}

/// The text is not a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a host: write it like example.com or example.com:8080")]
pub struct OwnHostError;

impl FromStr for OwnHost {
    type Err = OwnHostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || OwnHostError;
        if text.contains(['/', '\\', '@', '?', '#']) || text.chars().any(char::is_whitespace) {
            return Err(refused());
        }
        // Read from the text, because a parsed URL does not tell `:80` from no port.
        let port = text
            .rsplit_once(':')
            .filter(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|(_, port)| port.parse::<u16>().map_err(|_| refused()))
            .transpose()?;
        let url = Url::parse(&format!("http://{text}/")).map_err(|_| refused())?;
        match Place::of(&url) {
            None => Err(refused()),
            Some(Place::Name(name)) if name.is_empty() => Err(refused()),
            Some(place) => Ok(Self { place, port }),
        }
    }
}

impl fmt::Display for OwnHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Name(name) => f.write_str(name)?,
            Place::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Place::Address(address) => write!(f, "{address}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads_there(own: &OwnHost, url: &str) -> bool {
        own.is_host_of(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_listener_of_this_machine_is_found_under_all_its_names() {
        let names = [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "x.localhost",
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.8.9.10",
            "0x7f.1",
            "2130706433",
            "0.0.0.0",
            "0",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::ffff:0.0.0.0]",
        ];
        for listener in ["127.0.0.1:8080", "0.0.0.0:8080", "[::]:8080", "[::1]:8080"] {
            let own = OwnHost::from(listener.parse::<SocketAddr>().unwrap());
            for name in names {
                let ours = format!("http://{name}:8080/abc");
                assert!(leads_there(&own, &ours), "{listener} {ours}");
                let other = format!("http://{name}:3000/abc");
                assert!(!leads_there(&own, &other), "{listener} {other}");
                let other = format!("http://{name}/abc");
                assert!(!leads_there(&own, &other), "{listener} {other}");
            }
            assert!(!leads_there(&own, "http://192.0.2.7:8080/"), "{listener}");
            assert!(!leads_there(&own, "http://localhost.example:8080/"));
        }
    }

    #[test]
    fn a_listener_elsewhere_leaves_this_machine_to_others() {
        let own = OwnHost::from("192.0.2.7:80".parse::<SocketAddr>().unwrap());
        for url in [
            "http://192.0.2.7/",
            "http://192.0.2.7:80/a",
            "http://[::ffff:192.0.2.7]/",
            "http://3221225991/",
        ] {
            assert!(leads_there(&own, url), "{url}");
        }
        for url in [
            "http://localhost/",
            "https://192.0.2.7/",
            "http://192.0.2.8/",
        ] {
            assert!(!leads_there(&own, url), "{url}");
        }
    }

    #[test]
    fn a_name_of_this_machine_means_the_port_that_it_is_reached_by() {
        let own: OwnHost = "localhost".parse().unwrap();
        let own = own.or_port(Some(80));
        assert!(leads_there(&own, "http://127.0.0.1/"));
        assert!(!leads_there(&own, "http://localhost:3000/"));
        let elsewhere: OwnHost = "s.example".parse().unwrap();
        assert!(leads_there(
            &elsewhere.or_port(Some(443)),
            "http://s.example:8080/"
        ));
    }
}
