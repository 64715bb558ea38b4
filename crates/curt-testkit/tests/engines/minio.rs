use curt_testkit::engines::minio;
use curt_testkit::http::Client;
use curt_testkit::need;

#[test]
fn tests_share_a_store_and_have_buckets_of_their_own() {
    let server = need!(minio::shared());
    let one = server.bucket("keys").unwrap();
    let other = server.bucket("keys").unwrap();
    assert_ne!(one, other);
    let address = server.endpoint().replace("http://", "");
    let mut client = Client::new(address.parse().unwrap());
    let status = |client: &mut Client, bucket: &str| client.get(&format!("/{bucket}")).unwrap();
    // It names the bucket it refuses to show to a stranger, and knows no other.
    assert!(status(&mut client, &one).text().contains("AccessDenied"));
}
