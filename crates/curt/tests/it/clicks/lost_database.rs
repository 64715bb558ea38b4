//! A database that is gone is not a new installation: whoever lost it must learn of it before every link is a 404.

use std::fs;

use serde_json::json;

use super::{Class, clicks_of, new_link, wait_until_counted};
use crate::site::Site;

const SERVE: [&str; 5] = [
    "serve",
    "--set",
    "server.listen=127.0.0.1:0",
    "--set",
    "server.admin_listen=",
];

#[test]
fn a_database_that_is_gone_beside_a_used_spool_is_not_made_anew() {
    let mut site = Site::start(&["clicks.flush_every=50ms"]);
    let key = new_link(&site, &json!({}));
    let answer = site.api().send(&Class::Human.request(&format!("/{key}")));
    assert_eq!(answer.unwrap().status, 302);
    wait_until_counted(&site);
    assert!(site.terminate().success());
    let data = site.folder().join("data");
    for name in ["curt.db", "clicks.db"] {
        let (file, backup) = (data.join(name), data.join("backup"));
        fs::rename(&file, &backup).unwrap();
        for is_empty in [false, true] {
            if is_empty {
                fs::write(&file, "").unwrap();
            }
            for command in [
                &SERVE[..],
                &["migrate"],
                &["user", "add", "new@example.com"],
            ] {
                let refused = site.output(command);
                let said = String::from_utf8_lossy(&refused.stderr);
                assert!(!refused.status.success(), "{name}: {command:?}");
                for part in [name, "missing or empty", "backup", "curt migrate --new"] {
                    assert!(said.contains(part), "{part:?} is missing: {said}");
                }
                let made = fs::metadata(&file).map_or(0, |file| file.len());
                assert_eq!(made, 0, "{name}: {command:?} began anew");
            }
        }
        // As the message says: restored, everything is there again.
        fs::rename(&backup, &file).unwrap();
        site.restart();
        assert_eq!(site.api().follow(&key).unwrap().status, 302);
        assert!(clicks_of(&mut site.api(), &key).total() >= 1);
        assert!(site.terminate().success());
    }
    // Or begun anew on purpose.
    fs::remove_file(data.join("clicks.db")).unwrap();
    assert!(site.output(&["migrate", "--new"]).status.success());
    site.restart();
    assert_eq!(clicks_of(&mut site.api(), &key).total(), 0);
    assert_eq!(site.api().follow(&key).unwrap().status, 302);
}
