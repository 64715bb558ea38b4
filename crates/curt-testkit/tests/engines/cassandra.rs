use curt_testkit::engines::cassandra::{self, Cluster};
use curt_testkit::need;

#[test]
fn tests_share_a_node() {
    let one = need!(cassandra::shared());
    let other = need!(cassandra::shared());
    assert_eq!(one.addresses(), other.addresses());
    assert!(one.serves(0).unwrap());
}

#[test]
fn a_killed_node_comes_back_to_the_others() {
    let mut cluster = need!(Cluster::start(2));
    assert_eq!(cluster.addresses().split(',').count(), 2);
    cluster.node_mut(1).unwrap().kill().unwrap();
    assert!(!cluster.serves(1).unwrap());
    assert!(cluster.serves(0).unwrap());
    cluster.node_mut(1).unwrap().restart().unwrap();
    assert!(cluster.serves(1).unwrap());
}
