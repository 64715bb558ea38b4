//! Erasing one link's clicks on request: they are gone wherever they were, also in the window that is being counted, and
//! do not come back.

use curt_testkit::engines::postgres::shared;
use curt_testkit::need;
use serde_json::{Value, json};

use super::fresh::{LONG, ROLES, server_over};
use super::{CAPTURED, Class, Counts, WAIT_MAX, clicks_of, metric, new_link, report};
use crate::api::Api;
use crate::site::Site;
use crate::wait::eventually;

fn follow(site: &Site, key: &str, times: u64) {
    let before = metric(site, CAPTURED);
    let mut api = site.api();
    for _ in 0..times {
        let answer = api.send(&Class::Human.request(&format!("/{key}"))).unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
    }
    eventually(WAIT_MAX, || match metric(site, CAPTURED) - before {
        captured if captured >= times => Ok(()),
        captured => Err(format!("{captured} of {times} are written down")),
    });
}

fn erase(api: &mut Api, key: &str, query: &str) -> Value {
    let answer = api.delete(&format!("{key}/clicks{query}")).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn single(api: &mut Api, path: &str) -> usize {
    let page = api.get(path).unwrap().json();
    page["clicks"].as_array().unwrap().len()
}

fn judge_erasure(site: &mut Site) {
    let [own, other] = [json!({ "tags": ["spring"] }), json!({})].map(|more| new_link(site, &more));
    let of_own = format!("/api/v1/links/{own}/clicks");
    follow(site, &own, 3);
    assert_eq!(clicks_of(&mut site.api(), &own).human, 3, "written by now");
    follow(site, &own, 2);
    follow(site, &other, 4);
    let mut api = site.api();

    let erased = erase(&mut api, &own, "");
    assert_eq!(
        erased["erased"], 5,
        "those of the open window too: {erased}"
    );
    assert_eq!(erased["complete"], true, "{erased}");
    assert_eq!(single(&mut api, &of_own), 0);
    assert_eq!(single(&mut api, "/api/v1/clicks"), 4, "another link's stay");
    assert_eq!(single(&mut api, "/api/v1/clicks?tag=spring"), 0);
    let file = api.get(&format!("{of_own}.csv")).unwrap().text();
    assert_eq!(file.lines().count(), 1, "{file}");
    assert_eq!(clicks_of(&mut api, &own).human, 5, "counts stay");

    let again = erase(&mut api, &own, "?counts=true");
    assert_eq!(again["erased"], 0, "{again}");
    assert_eq!(again["complete"], true, "{again}");
    assert_eq!(clicks_of(&mut api, &own), Counts::default());
    assert_eq!(clicks_of(&mut api, &other).human, 4);
    for path in ["/api/v1/stats", "/api/v1/stats?tag=spring"] {
        let human = report(&mut api, path).human;
        let want = if path.contains("tag") { 5 } else { 9 };
        assert_eq!(human, want, "{path} stays");
    }

    // What was in the spool is not read again.
    site.kill();
    site.restart_as(ROLES);
    let mut api = site.api();
    assert_eq!(single(&mut api, &of_own), 0);
    assert_eq!(clicks_of(&mut api, &own), Counts::default());
    follow(site, &own, 1);
    eventually(WAIT_MAX, || match clicks_of(&mut api, &own).human {
        1 => Ok(()),
        human => Err(format!("{human} clicks after the erasure")),
    });
    assert_eq!(single(&mut api, &of_own), 1);
}

#[test]
fn erased_clicks_are_gone_from_windows_lists_and_files_and_stay_so_after_a_kill() {
    let mut site = Site::start(&["server.workers=2", LONG]);
    judge_erasure(&mut site);
}

#[test]
fn erased_clicks_are_gone_from_postgres_too() {
    let server = need!(shared());
    let database = server.database("erased").unwrap();
    judge_erasure(&mut server_over(&database.url()));
}

#[test]
fn clicks_can_be_erased_in_the_terminal() {
    let site = Site::start(&["server.workers=1", LONG]);
    let key = new_link(&site, &json!({}));
    follow(&site, &key, 3);
    let url = format!("http://{}", site.http());
    let run = |own: &[&str]| {
        let common = ["--url", &url, "--api-key", site.token()];
        site.output(&[&["link", "erase-clicks"], own, &common].concat())
    };
    let output = run(&[&key, "--json"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["erased"], 3, "{said}");
    assert_eq!(clicks_of(&mut site.api(), &key).human, 3);
    assert!(run(&[&key, "--counts"]).status.success());
    assert_eq!(clicks_of(&mut site.api(), &key).human, 0);
    let absent = run(&["nosuchkey"]);
    assert!(!absent.status.success(), "{absent:?}");
}
