//! `curt plan`, as it is called.

use std::process::Output;

use serde_json::Value;

use crate::site::Site;

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_figures_of_each_document_are_shown_with_what_is_wrong() {
    let site = Site::new(&[]);
    // How many figures each has, and how many of them are wrong.
    for (seed, figures_of, wrong_of) in [("A", 21, 5), ("b", 27, 6), ("C", 12, 3), ("D", 6, 0)] {
        let answer = printed(&site.output(&["plan", "--seed", seed, "--json"]));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["seed"], seed.to_uppercase());
        let figures = answer["figures"].as_array().unwrap();
        assert_eq!(figures.len(), figures_of, "{seed}");
        let text = printed(&site.output(&["plan", "--seed", seed]));
        let mut wrong = 0;
        for figure in figures {
            let quote = figure["quote"].as_str().unwrap();
            let verdict = figure["verdict"].as_str().unwrap();
            let mark = if verdict == "wrong" { "WRONG" } else { verdict };
            let mut lines = text.lines().skip_while(|line| !line.ends_with(quote));
            let line = lines.next().unwrap_or_else(|| panic!("{quote}: {text}"));
            assert_eq!(line.split_whitespace().next(), Some(mark), "{line}");
            if verdict == "wrong" {
                wrong += 1;
                let right = lines.next().unwrap();
                assert!(right.trim_start().starts_with("it is "), "{quote}: {right}");
                assert!(right.ends_with(figure["note"].as_str().unwrap()), "{right}");
            }
        }
        assert_eq!(wrong, wrong_of, "{seed}");
        let writes = &answer["plan"]["workload"]["writes_per_month"];
        assert!(writes.as_f64().unwrap() > 1e8, "{writes}");
        for title in [
            "Rates",
            "Storage",
            "Bandwidth",
            "Keys",
            "Machines",
            "Settings",
        ] {
            assert!(text.lines().any(|line| line.starts_with(title)), "{text}");
        }
    }
}

#[test]
fn a_plan_comes_with_settings_that_curt_takes() {
    let site = Site::new(&[]);
    let size = ["--writes-per-month", "2B", "--years", "10"];
    let settings = printed(&site.output(&[&["plan", "--config-only"], &size[..]].concat()));
    let file = site.folder().join("planned.toml");
    std::fs::write(&file, &settings).unwrap();
    let file = file.to_str().unwrap();
    let checked = site.output(&["check", "--config", file]);
    assert!(checked.status.success(), "{settings}\n{checked:?}");
    let answer = printed(&site.output(&[&["plan", "--json"], &size[..]].concat()));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["seed"], Value::Null);
    assert_eq!(answer["plan"]["storage"]["links"], 240e9);
    let text = printed(&site.output(&[&["plan"], &size[..]].concat()));
    assert!(text.contains("240 B"), "{text}");
    assert!(text.contains("Costs per unit: measured "), "{text}");
}

#[test]
fn wrong_inputs_of_a_plan_are_refused_by_name() {
    let site = Site::new(&[]);
    for (arguments, code, why) in [
        (
            &["--writes-per-month", "many"][..],
            2,
            "write it as 1000000",
        ),
        (&["--writes-per-month", "0"], 4, "--writes-per-month"),
        (&["--writes-per-month=-5"], 2, "--writes-per-month"),
        (&["--cached-share", "1.5"], 4, "--cached-share"),
        (&["--cores", "0", "--years", "0"], 4, "--years"),
        (&["--seed", "E"], 2, "possible values: A, B, C, D"),
        (&["--config-only", "--json"], 2, "--json"),
    ] {
        let output = site.output(&[&["plan"], arguments].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(why), "{arguments:?}: {told}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
