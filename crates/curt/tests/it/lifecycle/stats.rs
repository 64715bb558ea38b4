use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use curt_testkit::http::{Client, Connection, Request};
use curt_testkit::process::Guarded;
use serde_json::{Value, json};

use super::{printed, stderr};
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
/// Counted every 50 ms, on a machine that may be busy.
const COUNTED: Duration = Duration::from_secs(20);

fn linked(site: &Site) {
    let link = json!({"target": "https://example.com/", "alias": "plan"});
    let made = site.api().post("/api/v1/links", &link).unwrap();
    assert_eq!(made.status, 201, "{}", made.text());
}

fn follow(site: &Site, key: &str, times: usize) {
    let mut client = Client::new(site.http());
    for _ in 0..times {
        let request = Request::get(&format!("/{key}"))
            .header("User-Agent", FIREFOX)
            .header("Referer", "https://news.example/today");
        assert_eq!(client.send(&request).unwrap().status, 302);
    }
}

fn arguments<'a>(site: &'a Site, url: &'a str, own: &[&'a str]) -> Vec<&'a str> {
    let common = ["--url", url, "--api-key", site.token()];
    [&["stats"], own, &common].concat()
}

#[test]
fn clicks_can_be_read_in_the_terminal() {
    let site = Site::start(&["clicks.flush_every=50ms"]);
    let url = format!("http://{}", site.http());
    let run = |own: &[&str]| site.output(&arguments(&site, &url, own));
    linked(&site);
    follow(&site, "plan", 3);
    eventually(COUNTED, || {
        let shown = printed(&run(&["plan", "--json"]));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        match shown["stats"]["totals"]["human"].as_u64() {
            Some(3) => Ok(()),
            _ => Err(shown.to_string()),
        }
    });
    let shown = printed(&run(&["plan", "--days", "7"]));
    assert!(shown.contains("people    3\n"), "{shown}");
    assert!(shown.contains("▁▁▁▁▁▁█\n"), "one bar a day: {shown}");
    assert!(shown.contains("news.example"), "{shown}");
    let all = printed(&run(&["--by", "browser", "--tz", "Asia/Kolkata"]));
    assert!(
        all.contains("Firefox") && all.contains("Asia/Kolkata"),
        "{all}"
    );
    assert!(!all.contains("news.example"), "{all}");
    let by = |filter| run(&["plan", "--by", "browser", "--where", filter]);
    let (found, none) = (
        printed(&by("referrer=news.example")),
        printed(&by("class=bot")),
    );
    assert!(
        found.contains("Firefox") && !none.contains("Firefox"),
        "{found}{none}"
    );
    let refused = by("age=42");
    assert!(stderr(&refused).contains("DIMENSION=VALUE"), "{refused:?}");
}

#[test]
fn a_filter_counts_for_totals_curve_and_table() {
    let site = Site::start(&["clicks.flush_every=50ms"]);
    let url = format!("http://{}", site.http());
    let run = |own: &[&str]| site.output(&arguments(&site, &url, own));
    linked(&site);
    follow(&site, "plan", 3);
    eventually(COUNTED, || {
        let shown = printed(&run(&["plan"]));
        shown.contains("people    3\n").then_some(()).ok_or(shown)
    });
    let shown = printed(&run(&[
        "plan",
        "--days",
        "7",
        "--where",
        "referrer=other.example",
    ]));
    assert!(
        shown.contains("people    0\n") && shown.contains("▁▁▁▁▁▁▁\n"),
        "{shown}"
    );
    assert!(
        !shown.contains("Firefox") && !shown.contains("visitors"),
        "{shown}"
    );
    let shown = printed(&run(&[
        "plan",
        "--days",
        "7",
        "--where",
        "referrer=news.example",
    ]));
    assert!(
        shown.contains("people    3\n") && shown.contains("▁▁▁▁▁▁█\n"),
        "{shown}"
    );
    let shown = printed(&run(&[
        "plan",
        "--days",
        "90",
        "--where",
        "browser=Firefox",
    ]));
    assert!(shown.contains("people by 3 days"), "{shown}");
}

#[test]
fn clicks_can_be_watched() {
    let site = Site::start(&["clicks.flush_every=50ms"]);
    let url = format!("http://{}", site.http());
    linked(&site);
    let mut command = site.app().command();
    command
        .args(arguments(&site, &url, &["plan", "--watch"]))
        .stdout(Stdio::piped());
    let mut watching = Guarded::spawn(&mut command).unwrap();
    let stdout = watching.stdout.take().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    // The feed tells only what is counted after it was opened.
    let line = eventually(COUNTED, || {
        follow(&site, "plan", 1);
        told.recv_timeout(Duration::from_secs(1))
    });
    watching.kill().unwrap();
    assert!(line.contains(" people  +0 others"), "{line}");
}

#[test]
fn a_feed_does_not_hold_up_a_stop() {
    // Whatever waited for the feed would wait for all of it.
    let mut site = Site::start(&[&format!("server.shutdown_grace={}", length("60s", "10s"))]);
    let mut feed = Connection::open(site.http()).unwrap();
    let request = Request::get("/api/v1/live").bearer(site.token());
    feed.write_raw(&request.encode("test")).unwrap();
    let mut first = [0; 12];
    feed.stream().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let asked = Instant::now();
    assert!(site.terminate().success());
    assert!(
        asked.elapsed() < Duration::from_secs(length(50, 5)),
        "the feed held it up"
    );
    let rest = feed.read_to_close().unwrap();
    let rest = String::from_utf8(rest).unwrap();
    assert!(
        rest.contains("event: end\ndata: {\"reason\":\"shutdown\"}"),
        "{rest}"
    );
}

#[test]
fn stats_say_what_is_wrong() {
    let site = Site::start(&[]);
    let url = format!("http://{}", site.http());
    for (own, code, part) in [
        (&["plan"][..], 3, "There is no such link"),
        (&["plan", "--watch"], 3, "There is no such link"),
        (&["--by", "age"], 2, "use class, country"),
        (&["--tz", "Mars/Olympus"], 4, "IANA"),
    ] {
        let failed = site.output(&arguments(&site, &url, own));
        assert_eq!(
            failed.status.code(),
            Some(code),
            "{own:?}: {}",
            stderr(&failed)
        );
        assert!(
            stderr(&failed).contains(part),
            "{own:?}: {}",
            stderr(&failed)
        );
    }
    let off = Site::start(&["clicks.capture=false"]);
    let url = format!("http://{}", off.http());
    let failed = off.output(&arguments(&off, &url, &[]));
    assert!(
        stderr(&failed).contains("does not count clicks"),
        "{}",
        stderr(&failed)
    );
}
