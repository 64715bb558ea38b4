use curt_core::EffectiveState;
use curt_core::ports::{ListOrder, ListQuery};

use super::sql;
use crate::links::list::sample_statements;
use crate::schema::{DISTRIBUTED_LINKS, script_statements};

/// What one of the engines refuses, or runs on one server for all.
const REFUSED: [&str; 15] = [
    "advisory",
    "skip locked",
    "for update",
    "for share",
    "lock table",
    "references",
    "foreign key",
    "trigger",
    "collate",
    "lateral",
    "unnest",
    "random()",
    "pg_",
    "serial",
    "generated",
];

fn lists() -> Vec<String> {
    let mut statements = Vec::new();
    for order in [ListOrder::NewestFirst, ListOrder::KeyRising] {
        for state in [
            None,
            Some(EffectiveState::Active),
            Some(EffectiveState::Deleted),
        ] {
            statements.extend(sample_statements(&ListQuery {
                order,
                state,
                search: Some("text".into()),
                tags: vec!["tag".into()],
                limit: 10,
                ..ListQuery::default()
            }));
        }
    }
    statements
}

#[test]
fn no_statement_has_what_an_engine_that_spreads_tables_refuses() {
    let tables = DISTRIBUTED_LINKS.steps.iter();
    let tables = tables.flat_map(|step| script_statements(step.sql));
    let own = sql::ALL.iter().map(|sql| (*sql).to_owned());
    let shared = [super::super::sql::FIND, super::super::sql::ENDED].map(str::to_owned);
    let statements: Vec<String> = own.chain(shared).chain(lists()).chain(tables).collect();
    assert!(statements.len() > 30, "{}", statements.len());
    for statement in statements {
        let text = statement.to_ascii_lowercase();
        for refused in REFUSED {
            assert!(!text.contains(refused), "{refused:?} in {statement}");
        }
        assert!(!text.starts_with("with"), "{statement}");
    }
}

/// The column that a table is spread by must be in each of its unique keys.
#[test]
fn every_table_of_links_is_unique_by_its_key_and_nothing_else() {
    let step = DISTRIBUTED_LINKS.steps.first().unwrap();
    for statement in script_statements(step.sql) {
        assert!(!statement.contains("UNIQUE"), "{statement}");
        if !statement.starts_with("CREATE TABLE") {
            continue;
        }
        let spread_by = match statement.split_whitespace().nth(5).unwrap() {
            "links" | "released_links" => "key",
            "idempotency" | "cursors" => "name",
            "pings" => "slot",
            other => panic!("{other} is not in the documentation"),
        };
        let primary = statement
            .lines()
            .find(|line| line.contains("PRIMARY KEY"))
            .unwrap();
        assert!(primary.contains(spread_by), "{statement}");
    }
}

/// A change is about one key, so that it is one server's.
#[test]
fn every_change_names_the_key_of_its_row() {
    for statement in sql::ALL {
        let is_change = ["UPDATE", "DELETE"]
            .iter()
            .any(|verb| statement.starts_with(verb));
        let names_key = ["key = $2", "name = $2"]
            .iter()
            .any(|part| statement.contains(part));
        assert!(!is_change || names_key, "{statement}");
    }
}
