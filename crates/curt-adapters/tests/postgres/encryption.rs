//! Encrypted connections to a server with a certificate of its own.

use std::path::PathBuf;

use curt_core::ErrorKind;
use curt_testkit::engines::postgres::Server;
use curt_testkit::need;

use crate::world::open;

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
    let plain = open(&url("localhost", "sslmode=disable")).cursor();
    assert_eq!(plain.get("a").await.unwrap(), 7);
    std::fs::remove_file(roots).unwrap();
}
