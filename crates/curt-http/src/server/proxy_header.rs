//! The PROXY protocol, versions 1 (a line of text) and 2 (binary): what a proxy says about its client before the first byte
//! of the client's own. Read strictly: a header that could be understood in two ways is none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

/// Longest header of version 1, line end included, as its specification has it.
const V1_BYTES_MAX: usize = 107;
const V1_BEGIN: &[u8] = b"PROXY ";
/// What no HTTP request begins with.
const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, and the length of what follows.
const V2_BYTES_MIN: usize = 16;
/// Addresses and further facts in version 2. Certificates' names and ids of requests need some hundred bytes.
const V2_BODY_BYTES_MAX: usize = 2_048;
/// Longest header of either version.
pub(crate) const PROXY_HEADER_BYTES_MAX: usize = V2_BYTES_MIN + V2_BODY_BYTES_MAX;

/// Whose word about clients is taken. `None` in settings: nobody's.
#[derive(Clone, Debug)]
pub(crate) struct ProxyTrust(Box<[IpNet]>);

impl ProxyTrust {
    pub(crate) fn new(trusted: &[IpNet]) -> Self {
        Self(trusted.into())
    }

    /// Whether this peer has to begin with a header. Others are clients, and have none.
    pub(crate) fn expects_header(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.0.iter().any(|network| network.contains(&peer))
    }
}

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyHeader {
    /// The beginning of a header.
    Partial,
    /// A header of so many bytes.
    Complete {
        /// `None`: the proxy itself connects, as it does to check health, or does not know.
        client: Option<SocketAddr>,
        bytes: usize,
    },
    Malformed,
}

/// Reads the header at the beginning of `input`.
pub(crate) fn read_proxy_header(input: &[u8]) -> ProxyHeader {
    if begins_alike(input, V2_SIGNATURE) {
        read_v2(input)
    } else if begins_alike(input, V1_BEGIN) {
        read_v1(input)
    } else {
        ProxyHeader::Malformed
    }
}

/// Whether `input` begins with `expected`, or is a beginning of it.
fn begins_alike(input: &[u8], expected: &[u8]) -> bool {
    let common = input.len().min(expected.len());
    input[..common] == expected[..common]
}

fn read_v1(input: &[u8]) -> ProxyHeader {
    let within = &input[..input.len().min(V1_BYTES_MAX)];
    let Some(end) = within.iter().position(|&byte| byte == b'\n') else {
        return match input.len() < V1_BYTES_MAX {
            true => ProxyHeader::Partial,
            false => ProxyHeader::Malformed,
        };
    };
    let line = within[..end]
        .strip_suffix(b"\r")
        .and_then(|line| str::from_utf8(line).ok())
        .and_then(|line| line.strip_prefix("PROXY "));
    match line.and_then(read_v1_line) {
        Some(client) => ProxyHeader::Complete {
            client,
            bytes: end + 1,
        },
        None => ProxyHeader::Malformed,
    }
}

/// What follows the first word. `None`: malformed.
fn read_v1_line(line: &str) -> Option<Option<SocketAddr>> {
    // What follows an unknown protocol is to be ignored; that it is text is all that can be asked of it.
    let is_text = line.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_text && (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) {
        return Some(None);
    }
    let mut words = line.split(' ');
    let protocol = words.next()?;
    let [source, destination] = [words.next()?, words.next()?];
    let [source_port, destination_port] = [words.next()?, words.next()?].map(read_port);
    let source = match protocol {
        "TCP4" => {
            destination.parse::<Ipv4Addr>().ok()?;
            IpAddr::V4(source.parse().ok()?)
        }
        "TCP6" => {
            destination.parse::<Ipv6Addr>().ok()?;
            IpAddr::V6(source.parse().ok()?)
        }
        _ => return None,
    };
    destination_port?;
    match words.next() {
        None => Some(Some(SocketAddr::new(source, source_port?))),
        Some(_) => None,
    }
}

/// Digits alone, without zeros in front.
fn read_port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = text.len() > 1 && text.starts_with('0');
    match is_plain && !is_padded {
        true => text.parse().ok(),
        false => None,
    }
}

fn read_v2(input: &[u8]) -> ProxyHeader {
    let Some((begin, rest)) = input.split_at_checked(V2_BYTES_MIN) else {
        return ProxyHeader::Partial;
    };
    let [.., version_and_command, family, high, low] = *begin else {
        return ProxyHeader::Malformed;
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > V2_BODY_BYTES_MAX || version_and_command >> 4 != 2 {
        return ProxyHeader::Malformed;
    }
    let Some(body) = rest.get(..length) else {
        return ProxyHeader::Partial;
    };
    let client = match version_and_command & 0x0F {
        // The proxy's own connection, whatever follows.
        0 => Some(None),
        1 => read_v2_body(family, body),
        _ => None,
    };
    match client {
        Some(client) => ProxyHeader::Complete {
            client,
            bytes: V2_BYTES_MIN + length,
        },
        None => ProxyHeader::Malformed,
    }
}

/// `None`: malformed, or of a family that no client of a TCP listener has.
fn read_v2_body(family: u8, body: &[u8]) -> Option<Option<SocketAddr>> {
    match family {
        // Not known to the proxy.
        0x00 => Some(None),
        // TCP over IPv4: two addresses, two ports.
        0x11 => {
            let (addresses, facts) = body.split_first_chunk::<12>()?;
            let [a, b, c, d, .., high, low, _, _] = *addresses;
            let client = SocketAddr::from((Ipv4Addr::new(a, b, c, d), port(high, low)));
            are_facts(facts).then_some(Some(client))
        }
        // TCP over IPv6.
        0x21 => {
            let (addresses, facts) = body.split_first_chunk::<36>()?;
            let (source, _) = addresses.split_first_chunk::<16>()?;
            let [.., high, low, _, _] = *addresses;
            let client = SocketAddr::from((Ipv6Addr::from(*source), port(high, low)));
            are_facts(facts).then_some(Some(client))
        }
        _ => None,
    }
}

fn port(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

/// Whether these are whole facts: a type, a length, and as many bytes. None is of use here.
fn are_facts(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let Some(([_, high, low], rest)) = bytes.split_first_chunk::<3>() else {
            return false;
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some(rest) = rest.get(length..) else {
            return false;
        };
        bytes = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use curt_testkit::fuzz::Fuzz;

    use super::*;

    fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [V2_SIGNATURE, &[command, family], &length, body].concat()
    }

    fn client_of(input: &[u8]) -> Option<Option<String>> {
        match read_proxy_header(input) {
            ProxyHeader::Complete { client, bytes } => {
                assert_eq!(bytes, input.len(), "{input:?}");
                Some(client.map(|client| client.to_string()))
            }
            ProxyHeader::Malformed => None,
            ProxyHeader::Partial => panic!("{input:?} is a part"),
        }
    }

    const IPV4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0x1F, 0x90, 0, 80];

    fn ipv6() -> Vec<u8> {
        let source: Ipv6Addr = "2001:db8::7".parse().unwrap();
        [&source.octets()[..], &[0; 16], &[0x1F, 0x90, 0, 80]].concat()
    }

    #[test]
    fn headers_of_both_versions_name_the_client() {
        let known = |text: &str| Some(Some(text.to_owned()));
        for (header, client) in [
            (
                &b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n"[..],
                known("192.0.2.7:8080"),
            ),
            (
                b"PROXY TCP6 2001:db8::7 ::1 8080 80\r\n",
                known("[2001:db8::7]:8080"),
            ),
            (b"PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", known("0.0.0.0:0")),
            (b"PROXY UNKNOWN\r\n", Some(None)),
            (b"PROXY UNKNOWN whatever it is\r\n", Some(None)),
            (&v2(0x21, 0x11, &IPV4), known("192.0.2.7:8080")),
            (&v2(0x21, 0x21, &ipv6()), known("[2001:db8::7]:8080")),
            (
                &v2(0x21, 0x11, &[&IPV4[..], &[4, 0, 2, 1, 2]].concat()),
                known("192.0.2.7:8080"),
            ),
            (&v2(0x20, 0x00, &[]), Some(None)),
            (&v2(0x20, 0x11, &IPV4), Some(None)),
            (&v2(0x21, 0x00, b"anything"), Some(None)),
        ] {
            assert_eq!(client_of(header), client, "{header:?}");
        }
    }

    #[test]
    fn what_is_not_exactly_a_header_is_refused() {
        for header in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"proxy TCP4 192.0.2.7 10.0.0.1 8080 80\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\n",
            b"PROXY  TCP4 192.0.2.7 10.0.0.1 8080 80\r\n",
            b"PROXY TCP4 192.0.2.7  10.0.0.1 8080 80\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80 \r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80 1\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080\r\n",
            b"PROXY TCP4 192.0.2.07 10.0.0.1 8080 80\r\n",
            b"PROXY TCP4 192.0.2 10.0.0.1 8080 80\r\n",
            b"PROXY TCP4 2001:db8::7 ::1 8080 80\r\n",
            b"PROXY TCP6 192.0.2.7 10.0.0.1 8080 80\r\n",
            b"PROXY TCP6 fe80::1%eth0 ::1 8080 80\r\n",
            b"PROXY TCP4 192.0.2.7 example.com 8080 80\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 08080 80\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 +8080 80\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 80\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 \r\n",
            b"PROXY UDP4 192.0.2.7 10.0.0.1 8080 80\r\n",
            b"PROXY UNKNOWNS\r\n",
            b"PROXY UNKNOWN \0\r\n",
            b"PROXY UNKNOWN a\rb\r\n",
            b"PROXY \r\n",
            &[b"PROXY UNKNOWN ".as_slice(), &[b'a'; 93]].concat(),
            &v2(0x11, 0x11, &IPV4),
            &v2(0x31, 0x11, &IPV4),
            &v2(0x22, 0x11, &IPV4),
            &v2(0x21, 0x12, &IPV4),
            &v2(0x21, 0x31, &[0; 216]),
            &v2(0x21, 0x11, &IPV4[..11]),
            &v2(0x21, 0x21, &ipv6()[..35]),
            &v2(0x21, 0x11, &[&IPV4[..], &[4, 0]].concat()),
            &v2(0x21, 0x11, &[&IPV4[..], &[4, 0, 3, 1, 2]].concat()),
            &v2(0x20, 0x00, &[0; V2_BODY_BYTES_MAX + 1]),
        ] {
            assert_eq!(client_of(header), None, "{}", header.escape_ascii());
        }
    }

    #[test]
    fn a_line_may_have_107_bytes_and_no_more() {
        let line = |bytes: usize| {
            let begin = b"PROXY UNKNOWN ";
            let filled = vec![b'x'; bytes - begin.len() - 2];
            [&begin[..], &filled, b"\r\n"].concat()
        };
        assert_eq!(client_of(&line(107)), Some(None));
        assert_eq!(client_of(&line(108)), None);
    }

    /// However it arrives: no header ends within a header, and what follows changes nothing.
    #[test]
    fn mutated_headers_are_read_the_same_in_every_piece() {
        let samples = [
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\nGET / HTTP/1.1\r\n".to_vec(),
            b"PROXY TCP6 2001:db8::7 ::1 8080 80\r\n".to_vec(),
            b"PROXY UNKNOWN\r\n".to_vec(),
            v2(0x21, 0x11, &IPV4),
            v2(0x21, 0x21, &[&ipv6()[..], &[4, 0, 2, 1, 2]].concat()),
            v2(0x20, 0x00, &[]),
        ];
        Fuzz::new("PROXY header", samples)
            .with_words(["PROXY ", "TCP4", "TCP6", "UNKNOWN", "\r\n", " ", "\0", ":"])
            .run(|input| {
                let whole = read_proxy_header(input);
                let end = match whole {
                    ProxyHeader::Complete { bytes, .. } => {
                        assert!(bytes <= PROXY_HEADER_BYTES_MAX && bytes <= input.len());
                        bytes
                    }
                    ProxyHeader::Partial => {
                        assert!(input.len() < PROXY_HEADER_BYTES_MAX);
                        input.len()
                    }
                    ProxyHeader::Malformed => return false,
                };
                for part in 0..end {
                    assert_eq!(
                        read_proxy_header(&input[..part]),
                        ProxyHeader::Partial,
                        "{part} of {end}"
                    );
                }
                assert_eq!(read_proxy_header(&input[..end]), whole);
                matches!(whole, ProxyHeader::Complete { .. })
            });
    }
}
