use curt_testkit::engines::kafka;
use curt_testkit::engines::kafka::Cluster;
use curt_testkit::need;

#[test]
fn tests_share_a_broker() {
    let one = need!(kafka::shared());
    let other = need!(kafka::shared());
    assert_eq!(one.addresses(), other.addresses());
    assert_eq!(one.brokers_seen_by(0).unwrap(), 1);
}

#[test]
fn brokers_notice_the_death_and_the_return_of_one() {
    let mut cluster = need!(Cluster::start(3));
    assert_eq!(cluster.addresses().split(',').count(), 3);
    cluster.broker_mut(2).unwrap().kill().unwrap();
    cluster.wait_until_seen(0, 2).unwrap();
    cluster.broker_mut(2).unwrap().restart().unwrap();
    cluster.wait_until_seen(2, 3).unwrap();
}
