//! `resolver comparisons`: formula, model and tree are held against each other.

mod common;

use common::{json, run, stderr};
use serde_json::Value;

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("{field} is a number: {row}"))
}

#[test]
fn formula_model_and_tree_agree() {
    let document = json(&["comparisons", "--json", "--intervals", "200000", "--seed", "3"], 0);
    let rows = document["rows"].as_array().expect("rows");
    let row = |shape: &str, begins: &str, by: &str| {
        let found =
            rows.iter().find(|row| row["shape"] == shape && row["begins"] == begins && row["by"] == by);
        found.unwrap_or_else(|| panic!("a row {shape}, {begins}, {by}"))
    };
    for begins in ["uniform", "clustered"] {
        for shape in ["published", "tree"] {
            let (formula, counted) = (row(shape, begins, "formula"), row(shape, begins, "counted"));
            for field in ["independent", "grouped", "leaves", "leaf_independent", "leaf_grouped"] {
                let ratio = number(counted, field) / number(formula, field);
                assert!((ratio - 1.0).abs() < 0.01, "{shape}, {begins}, {field}: {ratio}");
            }
            assert!(number(counted, "grouped") < number(counted, "independent"));
        }
        // One rule apart, the model is the tree, to the comparison.
        let (model, tree) = (row("tree", begins, "as the tree"), row("tree", begins, "tree"));
        for field in ["independent", "grouped", "leaves", "intervals"] {
            assert_eq!(model[field], tree[field], "{begins}, {field}");
        }
        assert_eq!(number(tree, "intervals"), 200_000.0);
    }
    let saved = |begins: &str| {
        let counted = row("published", begins, "counted");
        let whole = |routing, leaf| number(counted, routing) + number(counted, leaf);
        1.0 - whole("grouped", "leaf_grouped") / whole("independent", "leaf_independent")
    };
    assert_eq!(((saved("uniform") * 100.0).round(), (saved("clustered") * 100.0).round()), (44.0, 91.0));
}

#[test]
fn what_cannot_be_counted_is_an_error() {
    for (args, said) in [
        (&["--intervals", "10"][..], "10"),
        (&["--reads", "0"], "0"),
        (&["--intervals", "1000000", "--budget", "1MiB"], "does not hold 1000000 intervals"),
    ] {
        let output = run(&[&["comparisons"][..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
