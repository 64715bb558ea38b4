//! Servers on machines of their own, each with its spool, over one PostgreSQL: a report at any of them is about all.

use std::path::Path;
use std::thread;

use curt_testkit::engines::postgres::{Database, shared};
use curt_testkit::need;
use serde_json::json;

use super::{Class, Counts, WAIT_MAX, clicks_of, new_link, report};
use crate::api::Api;
use crate::length::length;
use crate::site::Site;
use crate::wait::eventually;

/// Nobody mints keys: that is not what is looked at.
const ROLES: &[&str] = &["redirect", "api", "clicks"];
const SETTINGS: &[&str] = &["server.workers=2", "clicks.flush_every=50ms"];

fn server_over(database: &Database) -> Site {
    let links = database.url();
    let store = [("CURT_STORE_LINKS", Path::new(&links))];
    let mut site = Site::with_environment(SETTINGS, &store);
    let token = site.new_token("tests");
    site.use_token(&token);
    site.restart_as(ROLES);
    site
}

/// As many clicks of each class as there are rounds.
fn click(site: &Site, key: &str, rounds: u64) {
    let mut api = Api::new(site.http(), "");
    for _ in 0..rounds {
        for class in Class::ALL {
            let answer = api.send(&class.request(&format!("/{key}"))).unwrap();
            assert_eq!(answer.status, 302, "{answer:?}");
        }
    }
}

fn click_at_all(sites: &[Site], key: &str, rounds: u64) {
    thread::scope(|scope| {
        for site in sites {
            scope.spawn(move || click(site, key, rounds));
        }
    });
}

fn rounds_of(rounds: u64) -> Counts {
    Counts {
        human: rounds,
        bot: rounds,
        prefetch: rounds,
        head: rounds,
    }
}

/// Each server soon says the same, and it stays so.
fn wait_until_told(sites: &[Site], key: &str, expected: Counts) {
    for site in sites {
        let mut api = site.api();
        eventually(WAIT_MAX, || match clicks_of(&mut api, key) {
            told if told == expected => Ok(()),
            told => Err(format!("{told:?} instead of {expected:?}")),
        });
        assert_eq!(report(&mut api, "/api/v1/stats"), expected);
    }
}

#[test]
fn one_report_has_the_clicks_of_every_server_c1() {
    let server = need!(shared());
    let database = server.database("clicks").unwrap();
    let mut sites: Vec<Site> = (0..3).map(|_| server_over(&database)).collect();
    let key = new_link(&sites[0], &json!({}));
    let rounds = length(50, 2_000);
    click_at_all(&sites, &key, rounds);
    wait_until_told(&sites, &key, rounds_of(3 * rounds));

    // A server that is killed goes on where its own spool was counted, and not where another's was.
    click_at_all(&sites, &key, rounds);
    sites[0].kill();
    assert!(sites[1].terminate().success());
    for site in &mut sites[..2] {
        site.restart_as(ROLES);
    }
    click_at_all(&sites, &key, rounds);
    wait_until_told(&sites, &key, rounds_of(9 * rounds));

    let path = format!("/api/v1/links/{key}/stats");
    let visitors = sites[2].api().get(&path).unwrap().json()["visitors"].to_string();
    // One person came, and one who comes at midnight is two.
    let days = database.sql("select count(*) from click_salts").unwrap();
    assert_eq!(
        visitors, days,
        "all servers know a visitor by the same salt"
    );
    let clicks = database
        .sql("select sum(clicks) from click_blocks")
        .unwrap();
    assert_eq!(clicks, (36 * rounds).to_string());
    let streams = "select count(distinct stream) from click_offsets";
    assert_eq!(database.sql(streams).unwrap(), "3");
}

/// As default.toml says: what a server left in its spool is counted by any other process over the same store.
#[test]
fn the_spool_of_a_server_that_is_gone_is_counted_elsewhere_c1() {
    let server = need!(shared());
    let database = server.database("recovered").unwrap();
    let mut gone = server_over(&database);
    let key = new_link(&gone, &json!({}));
    let rounds = length(50, 2_000);
    // Half of it is counted already, and must not be counted again.
    click(&gone, &key, rounds);
    wait_until_told(std::slice::from_ref(&gone), &key, rounds_of(rounds));
    assert!(gone.terminate().success());
    gone.restart_as(&["redirect", "api"]);
    click(&gone, &key, rounds);
    gone.kill();

    let reporter = server_over(&database);
    assert_eq!(clicks_of(&mut reporter.api(), &key), rounds_of(rounds));
    let links = database.url();
    let store = [("CURT_STORE_LINKS", Path::new(&links))];
    let spool = format!(
        "store.stream=spool:{}",
        gone.folder().join("data/spool").display()
    );
    let mut helper = Site::with_environment(&["clicks.flush_every=50ms", &spool], &store);
    for _ in 0..2 {
        helper.restart_as(&["clicks"]);
        wait_until_told(std::slice::from_ref(&reporter), &key, rounds_of(2 * rounds));
        assert!(helper.terminate().success());
    }
}
