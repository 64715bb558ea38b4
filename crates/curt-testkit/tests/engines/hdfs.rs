use curt_testkit::engines::hdfs;
use curt_testkit::http::{Client, Request};
use curt_testkit::need;

/// A folder is made and seen, by the file system's own HTTP interface.
#[test]
fn a_killed_name_node_comes_back_with_its_names_and_its_data_node() {
    let mut cluster = need!(hdfs::Cluster::start());
    let url = cluster.url();
    assert_eq!(cluster.data_nodes().unwrap(), 1);
    let make = Request::new("PUT", "/webhdfs/v1/made?op=MKDIRS");
    let made = Client::new(cluster.page()).send(&make).unwrap();
    assert_eq!(made.json().unwrap()["boolean"], true);
    cluster.name_node_mut().kill().unwrap();
    assert!(cluster.data_nodes().is_err());
    cluster.name_node_mut().restart().unwrap();
    cluster.wait_until_writable().unwrap();
    assert_eq!(cluster.url(), url);
    let mut client = Client::new(cluster.page());
    let listed = client.get("/webhdfs/v1/?op=LISTSTATUS").unwrap().text();
    assert!(listed.contains("made"), "{listed}");
}
