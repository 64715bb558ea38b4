//! How many connections may be open at once, altogether and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use curt_accounts::rate_limit_prefix;
use ipnet::IpNet;
use prometheus_client::metrics::gauge::Gauge;

use crate::metrics::CutReason;

/// The bounds over all threads. Touched when a connection comes or goes, never per request.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    open: AtomicUsize,
    max: usize,
    share: Option<AddressShare>,
    gauge: Gauge,
}

/// What one address may have of the connections.
#[derive(Debug)]
struct AddressShare {
    max: usize,
    /// Proxies, whose connections are those of many clients.
    exempt: Arc<[IpNet]>,
    /// Addresses with open connections, and no others: never more entries than connections.
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl ConnectionLimit {
    pub(crate) fn new(max: usize, gauge: Gauge) -> Self {
        Self {
            open: AtomicUsize::new(0),
            max,
            share: None,
            gauge,
        }
    }

    /// Bounds the connections of one address (of one /64 in IPv6), other than those of `exempt` networks.
    pub(crate) fn share(mut self, per_address_max: usize, exempt: Arc<[IpNet]>) -> Self {
        self.share = (per_address_max < self.max).then(|| AddressShare {
            max: per_address_max,
            exempt,
            open: Mutex::default(),
        });
        self
    }

    /// Returns how many connections are open now.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Counts a connection, or tells which limit is reached.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Result<Permit, CutReason> {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        self.gauge.inc();
        // From here on the permit gives back what was counted.
        let mut permit = Permit {
            limit: Arc::clone(self),
            counted: None,
        };
        if before >= self.max {
            return Err(CutReason::Limit);
        }
        if let Some(share) = &self.share {
            permit.counted = share.count(peer).map_err(|()| CutReason::AddressLimit)?;
        }
        Ok(permit)
    }
}

impl AddressShare {
    /// Returns what is counted, if anything; an error means that the address has its share.
    fn count(&self, peer: IpAddr) -> Result<Option<IpAddr>, ()> {
        let peer = peer.to_canonical();
        if self.exempt.iter().any(|network| network.contains(&peer)) {
            return Ok(None);
        }
        let address = rate_limit_prefix(peer);
        let mut open = self.locked();
        let own = open.get(&address).copied().unwrap_or(0);
        if own >= self.max {
            return Err(());
        }
        open.insert(address, own + 1);
        Ok(Some(address))
    }

    fn give_back(&self, address: IpAddr) {
        let mut open = self.locked();
        match open.get_mut(&address) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(open.remove(&address)),
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open connection. It goes where the socket goes, and counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    limit: Arc<ConnectionLimit>,
    counted: Option<IpAddr>,
}

impl Permit {
    /// Counts the connection as the client's that its proxy names, or tells that the client has its share.
    pub(crate) fn count_client(&mut self, client: IpAddr) -> Result<(), CutReason> {
        if let Some(share) = &self.limit.share
            && self.counted.is_none()
        {
            self.counted = share.count(client).map_err(|()| CutReason::AddressLimit)?;
        }
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let limit = &self.limit;
        if let (Some(address), Some(share)) = (self.counted, &limit.share) {
            share.give_back(address);
        }
        limit.open.fetch_sub(1, Ordering::Relaxed);
        limit.gauge.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_closed_connection_makes_room_for_another() {
        let limit = Arc::new(ConnectionLimit::new(2, Gauge::default()));
        let client = address("192.0.2.1");
        let first = limit.admit(client).unwrap();
        let _second = limit.admit(client).unwrap();
        assert_eq!(limit.admit(client).unwrap_err(), CutReason::Limit);
        drop(first);
        let third = limit.admit(client);
        assert!(third.is_ok());
        assert_eq!((limit.open(), limit.gauge.get()), (2, 2));
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let proxies = ["198.51.100.0/24".parse().unwrap()].into();
        let limit = ConnectionLimit::new(10, Gauge::default()).share(2, proxies);
        let limit = Arc::new(limit);
        let mut open: Vec<Permit> = Vec::new();
        for (peer, admitted) in [
            ("192.0.2.1", true),
            ("::ffff:192.0.2.1", true),
            ("192.0.2.1", false),
            ("192.0.2.2", true),
            // One network of IPv6 is one address.
            ("2001:db8::1", true),
            ("2001:db8::2", true),
            ("2001:db8::3", false),
            ("2001:db8:0:1::1", true),
            ("198.51.100.7", true),
            ("198.51.100.7", true),
            ("198.51.100.7", true),
        ] {
            match limit.admit(address(peer)) {
                Ok(permit) => {
                    assert!(admitted, "{peer}");
                    open.push(permit);
                }
                Err(reason) => assert_eq!((admitted, reason), (false, CutReason::AddressLimit)),
            }
        }
        assert_eq!(limit.open(), open.len());
        open.clear();
        assert_eq!(limit.open(), 0);
        assert!(
            limit.share.as_ref().unwrap().locked().is_empty(),
            "addresses without connections are forgotten"
        );
    }
}
