//! A plan as a tree of lines, root first, inputs below: what EXPLAIN shows and golden tests compare.

use std::fmt;

use super::LogicalPlan;
use super::describe::describe;

/// What stands in front of the children of a node.
const BRANCH: &str = ":- ";
const LAST_BRANCH: &str = "+- ";

/// The tree of `plan`, one node a line, with what `annotate` adds within its brackets (path of the node: the input numbers from
/// the root).
pub fn tree_text(plan: &LogicalPlan, annotate: &dyn Fn(&[usize]) -> Option<String>) -> String {
    let mut text = String::new();
    write_node(plan, &mut Vec::new(), "", "", annotate, &mut text);
    text
}

fn write_node(
    plan: &LogicalPlan,
    path: &mut Vec<usize>,
    branch: &str,
    indent: &str,
    annotate: &dyn Fn(&[usize]) -> Option<String>,
    text: &mut String,
) {
    let mut line = describe(plan);
    if let Some(note) = annotate(path) {
        line.truncate(line.len() - 1);
        let separator = if line.ends_with('(') { "" } else { ", " };
        line.push_str(&format!("{separator}{note})"));
    }
    text.push_str(&format!("{indent}{branch}{line}\n"));
    let below = match branch {
        "" => indent.to_string(),
        LAST_BRANCH => format!("{indent}   "),
        _ => format!("{indent}:  "),
    };
    let inputs = plan.inputs();
    for (number, input) in inputs.iter().enumerate() {
        path.push(number);
        let branch = if number + 1 == inputs.len() { LAST_BRANCH } else { BRANCH };
        write_node(input, path, branch, &below, annotate, text);
        path.pop();
    }
}

impl fmt::Display for LogicalPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&tree_text(self, &|_| None))
    }
}
