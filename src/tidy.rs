//! The rules of the house, checked: what a reader may rely on in every file.
//!
//! Ratchets: the lists of exceptions may only shrink.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of code of a file, without its tests.
const LINES_MAX: usize = 600;

/// Files that are longer for now.
const LONG_FILES: &[&str] = &[];

/// Which modules a module may use: the direction in which data travels, and never back.
const LAYERS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("types", &["error"]),
    ("clock", &["error"]),
    ("config", &["error", "types"]),
    ("rpc", &["error", "clock", "types"]),
    ("expr", &["error", "types", "config", "clock"]),
    ("catalog", &["error", "types", "config", "sql"]),
    ("sql", &["error", "types", "config", "catalog"]),
    ("stream_graph", &["error", "types", "catalog", "expr", "config"]),
    ("job_graph", &["error", "types", "stream_graph", "config"]),
    ("plan", &["error", "types", "config", "catalog", "expr", "sql", "stream_graph", "job_graph"]),
    ("runtime", &["error", "types", "clock", "config", "catalog", "expr", "stream_graph", "job_graph"]),
    ("operators", &["error", "types", "clock", "config", "catalog", "expr", "stream_graph", "runtime"]),
    ("connectors", &["error", "types", "clock", "config", "catalog", "expr", "stream_graph", "runtime"]),
    ("cluster", &["error", "types", "clock", "config", "expr", "rpc", "stream_graph", "job_graph", "runtime"]),
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    rust_files(&root.join("src"), &mut found);
    let named = |path: &PathBuf| path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
    found.iter().map(|path| (named(path), fs::read_to_string(path).unwrap())).collect()
}

fn is_test_file(name: &str) -> bool {
    name.ends_with("/tests.rs")
        || name.contains("/tests/")
        || name.contains("fuzz/")
        || name.ends_with("tidy.rs")
        || name.ends_with("_tests.rs")
        || name.ends_with("/testing.rs")
        || name.starts_with("src/testing/")
}

/// The code of a file up to its unit tests.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ").map_or(text, |at| &text[..at])
}

fn report(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

#[test]
fn every_file_says_what_it_is() {
    let broken = sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name).collect();
    report("each file opens with a //! sentence that defines it", broken);
}

#[test]
fn files_stay_small() {
    let long = |(name, text): &(String, String)| {
        let lines = without_tests(text).lines().count();
        (lines > LINES_MAX && !is_test_file(name) && !LONG_FILES.contains(&name.as_str()))
            .then(|| format!("{name}: {lines} lines"))
    };
    report("a file has at most 600 lines without its tests", sources().iter().filter_map(long).collect());
}

#[test]
fn layers_point_one_way() {
    let mut broken = Vec::new();
    for (name, text) in sources().iter().filter(|(name, _)| !is_test_file(name)) {
        let module = name.trim_start_matches("src/").split(['/', '.']).next().unwrap();
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == module) else { continue };
        for (number, line) in without_tests(text).lines().enumerate() {
            let Some(at) = line.find("crate::").filter(|_| !line.trim_start().starts_with("//")) else { continue };
            let target = line[at + 7..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap();
            let known = LAYERS.iter().any(|(layer, _)| *layer == target) || ["client", "testing"].contains(&target);
            if known && target != module && !allowed.contains(&target) {
                broken.push(format!("{name}:{}: {module} may not use {target}", number + 1));
            }
        }
    }
    report("layers point one way", broken);
}

#[test]
fn nothing_is_left_unfinished() {
    let words = ["todo!(", "unimplemented!(", "FIXME", "dbg!("];
    let mut broken = Vec::new();
    for (name, text) in sources().iter().filter(|(name, _)| !name.ends_with("tidy.rs")) {
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                broken.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    report("nothing is left unfinished", broken);
}

#[test]
fn only_the_client_speaks() {
    let mut broken = Vec::new();
    for (name, text) in sources().iter().filter(|(name, _)| !is_test_file(name)) {
        if name.starts_with("src/client/") || name == "src/main.rs" {
            continue;
        }
        for (number, line) in without_tests(text).lines().enumerate() {
            if line.contains("println!(") && !line.trim_start().starts_with("//") {
                broken.push(format!("{name}:{}", number + 1));
            }
        }
    }
    report("only the client and main print", broken);
}

#[test]
fn paths_in_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md"] {
        let Ok(text) = fs::read_to_string(root.join(document)) else { continue };
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in links.filter(|target| !target.contains("://") && !root.join(target).exists()) {
            broken.push(format!("{document}: link to {target}"));
        }
        for quoted in text.split('`').skip(1).step_by(2) {
            let is_path = ["src/", "sql-tests/", "examples/", "benches/", ".ci/"].iter().any(|top| quoted.starts_with(top));
            let literal = quoted.split(['*', ' ', ':', '{', '<']).next().unwrap();
            if is_path && !literal.contains('…') && !root.join(literal).exists() {
                broken.push(format!("{document}: {quoted}"));
            }
        }
    }
    report("paths named in the documents exist", broken);
}
