use std::net::{IpAddr, Ipv6Addr};

/// The part of an address that one household or server has for itself: all of IPv4, the first 64 bits of IPv6, where
/// the rest is free for anybody to choose anew for each request.
pub(crate) fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let network = v6.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_household_is_one_address() {
        for (shown, counted) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
            ("::1", "::"),
        ] {
            let counted: IpAddr = counted.parse().unwrap();
            assert_eq!(household(shown.parse().unwrap()), counted, "{shown}");
        }
    }
}
