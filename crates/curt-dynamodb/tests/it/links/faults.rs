//! What callers are told when DynamoDB refuses, fails or does not answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use curt_core::ErrorKind;
use curt_dynamodb::{DynamoDb, DynamoDbSettings};
use curt_testkit::engines::proxy::{Line, Proxy};
use curt_testkit::engines::{dynamodb, unique};
use curt_testkit::length::time_max;
use curt_testkit::need;
use curt_testkit::sample::{alias, id};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::settings;

/// Tables that are up to date.
const VERSION: &str = r#"{"Item":{"pk":{"S":"schema"},"sk":{"B":"AQ=="},"version":{"N":"1001"}}}"#;

/// What a server says to an operation, by its name, and how often it was asked before.
type Script = Arc<dyn Fn(&str, usize) -> (u16, String) + Send + Sync>;

/// A server that speaks as much HTTP as the client needs. The first answer says that the tables are there.
async fn scripted(script: Script) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut asked = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(operation) = read_request(&mut stream).await else {
                continue;
            };
            let (status, body) = match asked {
                0 => (200, VERSION.to_owned()),
                _ => script(&operation, asked - 1),
            };
            asked += 1;
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} -\r\ncontent-type: application/x-amz-json-1.0\r\n\
                 content-length: {length}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all((head + &body).as_bytes()).await.ok();
        }
    });
    address
}

/// The operation that a request names, once all of it was read.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
            let length: usize = field("content-length: ")?.trim().parse().ok()?;
            if body.len() >= length {
                let target = field("x-amz-target: ")?;
                return Some(target.split_once('.')?.1.to_owned());
            }
        }
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
}

fn refusal(code: &str) -> String {
    format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"told"}}"#)
}

async fn open_scripted(script: Script) -> DynamoDb {
    let url = dynamodb::url(scripted(script).await, "scripted");
    DynamoDb::open(&url, &settings()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_for_its_limits_is_throttling_and_has_changed_nothing() {
    for code in [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
    ] {
        let links = open_scripted(Arc::new(move |_, _| (400, refusal(code)))).await;
        let links = links.links();
        let error = links.get(&id("a")).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Throttled, "{code}: {error}");
        let error = links.insert_if_absent(vec![alias("a")], None).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Throttled, "{code}: {error}");
    }
}

/// Only of a write is it unknown what became of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_inside_the_service_leaves_a_write_in_doubt() {
    let fail = |_: &str, _| (500, refusal("InternalServerError"));
    let cursor = open_scripted(Arc::new(fail)).await.cursor();
    let error = cursor.get("a").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    let error = cursor.advance("a", 0, 1).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_are_named() {
    let refuse = |_: &str, _| (400, refusal("UnrecognizedClientException"));
    let links = open_scripted(Arc::new(refuse)).await.links();
    let error = links.get(&id("a")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert!(error.detail.contains("credentials"), "{error}");
}

/// The service leaves a part of a batch when it is busy: that is asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_batch_left_is_asked_for_again() {
    let script = |operation: &str, asked| {
        assert_eq!(operation, "batchgetitem");
        let left = r#"{"UnprocessedKeys":{"scripted-links":{"Keys":[{"pk":{"S":"0/a"}}]}}}"#;
        match asked {
            0 | 1 => (200, left.to_owned()),
            _ => (
                200,
                r#"{"Responses":{"scripted-links":[{"pk":{"S":"0/a"},"state":{"N":"0"},"spent":{"N":"7"},
                   "target":{"S":"https://example.com/"},"owner":{"N":"1"},"generation":{"N":"1"},
                   "version":{"N":"1"},"origin":{"N":"0"},"created_at":{"N":"0"},"updated_at":{"N":"0"},
                   "visibility":{"N":"0"}}]}}"#
                    .to_owned(),
            ),
        }
    };
    let links = open_scripted(Arc::new(script)).await.links();
    let spent = links.clicks_spent_many(&[id("a"), id("b")]).await.unwrap();
    assert_eq!(spent, [7, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_answers_calls_end_at_their_deadline_and_come_back() {
    let server = need!(dynamodb::shared());
    let proxy = Proxy::to(server.address()).unwrap();
    let hasty = DynamoDbSettings {
        call_timeout: Duration::from_secs(6),
        ..settings()
    };
    let url = dynamodb::url(proxy.address(), &unique("deaf"));
    let database = DynamoDb::open(&url, &hasty).unwrap();
    database.migrate().await.unwrap();
    let cursor = database.cursor();
    assert!(cursor.advance("a", 0, 1).await.unwrap());
    proxy.set(Line::Held);
    let began = Instant::now();
    let error = cursor.get("a").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    let error = cursor.advance("a", 1, 2).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    assert!(began.elapsed() < time_max(Duration::from_secs(8)));
    proxy.set(Line::Sound);
    assert!((1..=2).contains(&cursor.get("a").await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_not_there_has_changed_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let database = DynamoDb::open(&dynamodb::url(address, "away"), &settings()).unwrap();
    let error = database.cursor().advance("a", 0, 1).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
}
