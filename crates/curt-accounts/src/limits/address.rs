use std::net::{IpAddr, Ipv6Addr};

/// Returns the part of an address that limits count by: all of IPv4, the first 64 bits of IPv6, where the rest is free
/// for anybody to choose anew for each request.
#[must_use]
pub fn rate_limit_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => first_bits(v6, 64),
        v4 => v4,
    }
}

/// The network that is given to one site, which divides it into as many as 65,536 of /64: the first 48
/// bits of IPv6.
pub(super) fn site(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let IpAddr::V6(network) = first_bits(v6, 48) else {
                return None;
            };
            // Marked by its last bit, so that it is not taken for its own first /64.
            Some(IpAddr::V6(Ipv6Addr::from_bits(network.to_bits() | 1)))
        }
        IpAddr::V4(_) => None,
    }
}

/// Everything that an address is counted as.
pub(super) fn prefixes(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    [Some(rate_limit_prefix(address)), site(address)]
        .into_iter()
        .flatten()
}

fn first_bits(address: Ipv6Addr, bits: u32) -> IpAddr {
    let rest = 128 - bits;
    IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> rest << rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ipv6_network_is_one_address() {
        for (shown, counted) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
            ("::1", "::"),
        ] {
            let counted: IpAddr = counted.parse().unwrap();
            assert_eq!(
                rate_limit_prefix(shown.parse().unwrap()),
                counted,
                "{shown}"
            );
        }
    }

    #[test]
    fn networks_of_one_site_are_one_network() {
        let of = |text: &str| site(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:ffff::9"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:2:2::"));
        assert_ne!(
            of("2001:db8:1::"),
            Some(rate_limit_prefix("2001:db8:1::".parse().unwrap()))
        );
        assert_eq!(of("192.0.2.7"), None);
        assert_eq!(of("::ffff:192.0.2.7"), None);
    }
}
