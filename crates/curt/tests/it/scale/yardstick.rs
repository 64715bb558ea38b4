//! `curt bench keys --engines`: the engines of the configuration beside their bare statements.

use curt_testkit::need;

use super::line::reconciles;
use super::plant::{Plant, Shape};

const SHARDS: Shape = Shape {
    ledgers: 2,
    pools: 1,
};

#[test]
fn engines_are_measured_beside_their_bare_statements_and_nothing_is_left_k2() {
    let plant = need!(Plant::start(SHARDS, &[]));
    let measure = ["bench", "keys", "--engines", "--seconds", "1"];
    let printed = plant.run(&[&measure[..], &["--json"]].concat());
    let rows: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let rows = rows.as_array().unwrap();
    let whats: Vec<&str> = rows.iter().filter_map(|row| row["what"].as_str()).collect();
    assert_eq!(whats, ["mint", "take", "mint", "take", "push", "pop"]);
    for row in rows {
        let [ours, bare] = ["keys_per_second", "bare_keys_per_second"]
            .map(|name| row[name].as_f64().unwrap_or_default());
        let ratio = row["of_bare"].as_f64().unwrap();
        println!("scale: {} {ours:.0}/s, {ratio:.2} of bare", row["what"]);
        assert!(ours > 0.0 && (ours / bare - ratio).abs() < 0.01, "{row}");
    }
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
    assert!(plant.run(&measure).contains("of bare"));
}
