//! A defect that one client meets is not everybody's.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use curt_core::{Clock, SystemClock, UnixMillis};

use crate::client::Client;
use crate::host::Host;

/// Panics at the next question after it was told to.
#[derive(Default)]
struct BrokenClock(AtomicBool);

impl Clock for BrokenClock {
    fn now(&self) -> UnixMillis {
        assert!(
            !self.0.swap(false, Ordering::SeqCst),
            "the clock fell off the wall"
        );
        SystemClock.now()
    }
}

#[test]
fn a_panic_in_one_connection_leaves_the_others_alone() {
    let clock = Arc::new(BrokenClock::default());
    let host = Host::with_clock(|settings| settings.workers = 1, clock.clone());
    let mut bystander = Client::connect(host.address);
    assert_eq!(bystander.get("/plain").status, 302);
    for _ in 0..3 {
        let mut victim = Client::connect(host.address);
        assert_eq!(victim.get("/plain").status, 302);
        clock.0.store(true, Ordering::SeqCst);
        victim.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(victim.stream.read(&mut [0; 64]).unwrap_or(0), 0);
        assert_eq!(bystander.get("/plain").status, 302);
    }
    assert_eq!(Client::connect(host.address).get("/plain").status, 302);
    while host.metrics.connections.get() > 1 {
        std::thread::yield_now();
    }
    drop(bystander);
    assert_eq!(host.stopped().cut, 0);
}
