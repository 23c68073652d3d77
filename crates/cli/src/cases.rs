//! For tests: the public bug reports, reduced to inputs with the right answer.

use std::{env, fs, path::Path};

/// Returns the cases of one operation; none, with a word on why, where the corpora are not there.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn of_operation(operation: &str) -> Vec<serde_json::Value> {
    let Some(shared) = env::var_os("BLOOMCRAWL_CORPORA") else {
        eprintln!("skipped: BLOOMCRAWL_CORPORA is not set");
        return Vec::new();
    };
    let path = Path::new(&shared).join("cases/public-reports.jsonl");
    let text = fs::read_to_string(path).expect("the cases are readable");
    let cases = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a case is JSON"));
    let cases: Vec<serde_json::Value> = cases
        .filter(|case: &serde_json::Value| case["op"] == operation)
        .collect();
    assert!(!cases.is_empty(), "the file holds cases of {operation}");
    cases
}
