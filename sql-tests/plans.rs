//! The plans of the example scripts: what they are, stage by stage, and that every process makes the same.
//!
//! `UPDATE_EXPECT=1 cargo test --test cli plans` writes what comes out into `sql-tests/explain/examples`.

use std::path::{Path, PathBuf};

use super::{flott, stderr, stdout};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let scripts = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> = scripts.filter(|path| path.extension().is_some_and(|ending| ending == "sql")).collect();
    scripts.sort();
    assert!(scripts.len() > 4, "there are examples: {scripts:?}");
    scripts
}

fn explained(script: &Path, options: &[&str]) -> String {
    let mut command = flott(&["explain", script.to_str().unwrap()]);
    let output = command.args(options).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}: {}", script.display(), stderr(&output));
    stdout(&output)
}

#[test]
fn the_examples_have_the_recorded_plans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests/explain/examples");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    for script in examples() {
        let recorded = folder.join(script.with_extension("txt").file_name().unwrap());
        let found = explained(&script, &[]);
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&recorded, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&recorded).unwrap_or_default();
        assert_eq!(found, expected, "{}: set UPDATE_EXPECT=1 if this is right", script.display());
    }
}

#[test]
fn every_process_makes_the_same_plan() {
    let parallel = ["--format", "json", "--set", "parallelism.default=3"];
    for script in examples() {
        for options in [&["--format", "json"][..], &parallel, &["--format", "dot"], &["--format", "mermaid"]] {
            // Each process has hash seeds of its own.
            let first = explained(&script, options);
            assert!(!first.trim().is_empty());
            for _ in 0..2 {
                assert_eq!(explained(&script, options), first, "{} {options:?}", script.display());
            }
        }
    }
}
