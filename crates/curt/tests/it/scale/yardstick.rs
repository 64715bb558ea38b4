//! `curt bench keys --engines`: the engines of the configuration beside their bare statements.

use curt_testkit::engines::mariadb;
use curt_testkit::need;
use curt_testkit::process::App;
use serde_json::Value;

use super::line::reconciles;
use super::plant::{Plant, Shape};

const SHARDS: Shape = Shape {
    ledgers: 2,
    pools: 1,
};

const MEASURE: &[&str] = &["bench", "keys", "--engines", "--seconds", "1"];

/// What was measured, in the order of the rows, after a look at each.
fn measured(rows: &[Value]) -> Vec<&str> {
    for row in rows {
        let [ours, bare] = ["keys_per_second", "bare_keys_per_second"]
            .map(|name| row[name].as_f64().unwrap_or_default());
        assert!(ours > 0.0, "{row}");
        let Some(ratio) = row["of_bare"].as_f64() else {
            continue;
        };
        println!("scale: {} {ours:.0}/s, {ratio:.2} of bare", row["what"]);
        assert!((ours / bare - ratio).abs() < 0.01, "{row}");
    }
    rows.iter().filter_map(|row| row["what"].as_str()).collect()
}

#[test]
fn engines_are_measured_beside_their_bare_statements_and_nothing_is_left_k2() {
    let plant = need!(Plant::start(SHARDS, &[]));
    let printed = plant.run(&[MEASURE, &["--json"]].concat());
    let rows: Vec<Value> = serde_json::from_str(&printed).unwrap();
    let all = ["mint", "take", "mint", "take", "push", "pop"];
    assert_eq!(measured(&rows), all);
    assert!(rows.iter().all(|row| row["of_bare"].is_f64()), "{rows:?}");
    let minted: u64 = rows
        .iter()
        .filter(|row| row["what"] == "mint")
        .filter_map(|row| row["keys"].as_u64())
        .sum();
    let rest = reconciles(&plant, 0);
    assert_eq!(rest.keys("free"), Ok(minted), "they stay to be used");
    assert_eq!(plant.pools[0].run_command(&["DBSIZE"]).unwrap().trim(), "0");
    let tables = "select count(*) from pg_class where relname = 'bare_keys'";
    assert_eq!(plant.ledgers[0].sql(tables).unwrap().trim(), "0");
    assert!(plant.run(MEASURE).contains("of bare"));
}

#[test]
fn mysql_is_measured_beside_its_bare_statements() {
    let keys = need!(mariadb::shared()).database("keys").unwrap();
    let app = App::new(env!("CARGO_BIN_EXE_curt")).unwrap();
    let app = app.setting("store.keys", keys.url());
    let printed = app.run(&[MEASURE, &["--json"]].concat()).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&printed).unwrap();
    assert_eq!(measured(&rows)[..2], ["mint", "take"]);
    assert!(rows[..2].iter().all(|row| row["of_bare"].is_f64()));
    assert_eq!(keys.sql("show tables like 'bare_keys'").unwrap().trim(), "");
}
