//! Encrypted connections to a server with a certificate of its own.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;

use curt_core::ErrorKind;
use curt_testkit::engines::postgres::Server;
use curt_testkit::need;

use crate::ledger::world::open;

/// Makes a certificate for `localhost` as the engine's own user and turns encryption on.
fn encrypt(server: &Server) -> PathBuf {
    let make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout server.key -out server.crt 2>&1";
    let sql = format!("copy (select 1) to program '{make} && chmod 600 server.key'");
    server.sql(&sql).unwrap();
    server.sql("alter system set ssl = on").unwrap();
    server.sql("select pg_reload_conf()").unwrap();
    let copy = std::env::temp_dir().join(format!("curt-test-{}.crt", server.port()));
    std::fs::copy(server.folder().join("data/server.crt"), &copy).unwrap();
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_and_its_name_are_checked() {
    let server = need!(Server::start());
    let roots = encrypt(&server);
    let url = |host: &str, options: &str| {
        format!(
            "postgres://postgres@{host}:{}/postgres?{options}",
            server.port()
        )
    };
    let trusted = format!("sslmode=require&sslrootcert={}", roots.display());

    let encrypted = open(&url("localhost", &trusted)).cursor();
    assert!(encrypted.advance("a", 0, 7).await.unwrap());
    let used = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) \
        where ssl and application_name = 'curt'";
    assert_eq!(server.sql(used).unwrap(), "1", "it is really encrypted");

    for (what, url) in [
        ("another name", url("127.0.0.1", &trusted)),
        (
            "an unknown certificate",
            url("localhost", "sslmode=require"),
        ),
    ] {
        let refused = open(&url).cursor().get("a").await;
        let error = refused.expect_err(what);
        assert_eq!(error.kind, ErrorKind::Unavailable, "{what}: {error:?}");
    }
    let by_roots = format!("sslrootcert={}", roots.display());
    let encrypted = open(&url("localhost", &by_roots)).cursor();
    assert_eq!(encrypted.get("a").await.unwrap(), 7);
    assert_eq!(
        server.sql(used).unwrap(),
        "2",
        "a root certificate means it"
    );
    let plain = open(&url("localhost", "sslmode=disable")).cursor();
    assert_eq!(plain.get("a").await.unwrap(), 7);
    std::fs::remove_file(roots).unwrap();
}

/// What PostgreSQL is asked for encryption with.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const PASSWORD: &str = "S3cret-of-the-test";

/// Everything that a client sends to a server that has no encryption and wants the password in clear text.
fn recorded(listener: &TcpListener) -> Vec<u8> {
    let (mut socket, _) = listener.accept().unwrap();
    let mut seen = Vec::new();
    let mut bytes = [0; 1024];
    loop {
        let Ok(read @ 1..) = socket.read(&mut bytes) else {
            return seen;
        };
        let asks_first = seen.is_empty() && bytes[..read] == SSL_REQUEST;
        seen.extend_from_slice(&bytes[..read]);
        let answer: &[u8] = match asks_first {
            true => b"N",
            false => &[b'R', 0, 0, 0, 8, 0, 0, 0, 3],
        };
        if socket.write_all(answer).is_err() {
            return seen;
        }
    }
}

/// Of a man in the middle who pretends that the server cannot encrypt.
#[tokio::test(flavor = "multi_thread")]
async fn who_names_a_root_certificate_sends_nothing_in_clear_text() {
    let roots = "/etc/ssl/certs/ca-certificates.crt";
    if !std::path::Path::new(roots).exists() {
        panic!("the test needs the certificates of the system: {roots}");
    }
    for (options, is_asked) in [
        (format!("sslrootcert={roots}"), true),
        ("sslmode=require".to_owned(), true),
        (String::new(), false),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || recorded(&listener));
        let url = format!("postgres://u:{PASSWORD}@127.0.0.1:{port}/db?{options}");
        let cursor = open(&url).cursor();
        // The fake serves nobody: all attempts end in an error or by being given up.
        let asking = tokio::time::timeout(std::time::Duration::from_secs(5), cursor.get("a"));
        assert!(!matches!(asking.await, Ok(Ok(_))), "{options}");
        drop(cursor);
        let seen = server.join().unwrap();
        let text = String::from_utf8_lossy(&seen);
        assert_eq!(
            seen.starts_with(&SSL_REQUEST),
            is_asked,
            "{options}: {seen:?}"
        );
        // Without a word about encryption a server on this machine is trusted with it.
        assert_eq!(text.contains(PASSWORD), !is_asked, "{options}: {seen:?}");
    }
}
