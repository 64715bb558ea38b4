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
    // A stranger may not look into it.
    let answer = client.get(&format!("/{one}")).unwrap().text();
    assert!(answer.contains("AccessDenied"), "{answer}");
}
