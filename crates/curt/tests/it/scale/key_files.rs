//! Key files on HDFS, written ahead of time by a command and used by a server.

use std::time::Duration;

use curt_testkit::engines::{hdfs, unique};
use curt_testkit::need;

use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

#[test]
fn key_files_on_hdfs_are_filled_ahead_and_their_keys_go_to_links_k2() {
    let cluster = need!(hdfs::shared());
    let wanted = length(60_000_u64, 10_000_000);
    let files = format!("store.files={}/{}", cluster.url(), unique("keys"));
    let file_keys = format!("keys.file.file_keys={}", wanted / 3);
    let settings = ["keys.strategy=file", &files, &file_keys];
    let mut site = Site::prepared(&settings);
    let until = wanted.to_string();
    let fill = |until: &str| {
        let set = site.set_arguments();
        let set = set.iter().map(String::as_str);
        let arguments: Vec<&str> = ["keys", "fill", "--until", until]
            .into_iter()
            .chain(set)
            .collect();
        site.output(&arguments)
    };
    let filled = fill(&until);
    let told = String::from_utf8(filled.stdout).unwrap();
    assert!(filled.status.success(), "{told}");
    assert!(told.ends_with(" keys wait in key files\n"), "{told}");
    let digits: String = told.chars().filter(char::is_ascii_digit).collect();
    let waiting: u64 = digits.parse().unwrap();
    assert!((wanted..wanted * 4 / 3 + 3).contains(&waiting), "{told}");
    let again = fill(&until);
    assert_eq!(again.stdout, told.as_bytes(), "nothing is left to do");

    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart();
    // A server that has just started may not have read the first block yet.
    let random = || site.metrics().get("curt_key_fallbacks_total").unwrap();
    eventually(Duration::from_secs(60), || {
        let before = random();
        let answer = site.api().create("https://example.com/").unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        match random() - before {
            0.0 => Ok(()),
            _ => Err("the key did not come from a file"),
        }
    });
    assert!(site.terminate().success());
}

#[test]
fn what_has_no_key_files_is_not_filled() {
    let site = Site::prepared(&[]);
    let refused = site.output(&["keys", "fill", "--until", "10"]);
    assert!(!refused.status.success());
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(
        told.contains("the key strategy pool has no key files"),
        "{told}"
    );
}
