use curt_testkit::engines::zookeeper::{self, Ensemble};
use curt_testkit::need;

#[test]
fn tests_share_a_single_server() {
    let one = need!(zookeeper::shared());
    let other = need!(zookeeper::shared());
    assert_eq!(one.addresses(), other.addresses());
    assert_eq!(one.leader().unwrap(), 0);
    assert_eq!(one.addresses(), one.address(0).unwrap().to_string());
}

#[test]
fn an_ensemble_elects_another_leader() {
    let mut ensemble = need!(Ensemble::start(3));
    assert_eq!(ensemble.addresses().split(',').count(), 3);
    let first = ensemble.kill_leader().unwrap();
    let second = ensemble.wait_for_leader().unwrap();
    assert_ne!(second, first);
    ensemble.server_mut(first).unwrap().restart().unwrap();
    assert_eq!(ensemble.leader().unwrap(), second);
}
