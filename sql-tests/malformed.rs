//! Malformed input: each case runs the built binary on something that is wrong and expects exactly one clear error.
//!
//! The cases stand in `sql-tests/malformed/*.txt`, grouped by what is wrong; [`case`] tells their form, [`run`] what every one of them
//! must keep. `UPDATE_EXPECT=1` writes what the binary says into the files.

#[path = "malformed/case.rs"]
mod case;
#[path = "malformed/fuzz.rs"]
mod fuzz;
#[path = "malformed/run.rs"]
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::case::{CaseFile, Expectation};

fn main() -> ExitCode {
    let files: Vec<CaseFile> = paths().iter().map(|path| CaseFile::read(path)).collect();
    assert!(!files.is_empty(), "there are no files of cases");
    let mutated = fuzz::trials(&files);
    let files = Arc::new(Mutex::new(files));
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut all = trials(&files, update);
    all.extend(mutated);
    let conclusion = libtest_mimic::run(&Arguments::from_args(), all);
    if update {
        files.lock().expect("no case panics while it holds the files").iter().for_each(CaseFile::write);
    }
    conclusion.exit_code()
}

fn paths() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests/malformed");
    let entries = std::fs::read_dir(&folder).expect("the folder of cases is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths
}

fn trials(files: &Arc<Mutex<Vec<CaseFile>>>, update: bool) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (at, file) in files.lock().expect("nothing runs yet").iter().enumerate() {
        for (number, case) in file.cases.iter().enumerate() {
            let name = format!("{}: {}", file.name(), case.title);
            let missing = case.needs.iter().find(|need| !run::succeeds(&need.command));
            if let Some(need) = missing {
                eprintln!("skipped: {name}: {}", need.reason);
            }
            let (case, files) = (case.clone(), Arc::clone(files));
            let trial = Trial::test(name, move || {
                let actual = run::run(&case)?;
                if update {
                    let expected = &mut files.lock().expect("no case panics while it holds the files")[at].cases[number].expected;
                    *expected = actual.clone();
                }
                run::check(&case, &actual).map_err(Failed::from)?;
                if update { Ok(()) } else { compare(&case.expected, &actual) }
            });
            trials.push(trial.with_ignored_flag(missing.is_some()));
        }
    }
    trials
}

fn compare(expected: &Expectation, actual: &Expectation) -> Result<(), Failed> {
    if expected == actual {
        return Ok(());
    }
    Err(format!("expected\n{expected}\nbut got\n{actual}\n(UPDATE_EXPECT=1 writes it into the file)").into())
}
