//! The list of trials: every file in every mode, run by libtest-mimic, whose output any Rust tool can read.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Conclusion, Failed, Trial};

use super::execution::{Effect, run_file, update_file};
use super::files::{TestFile, find_files};
use super::modes::{MODES, Mode, mode};
use super::progress::Progress;
use super::proof::Proof;
use crate::clock::run_within;
use crate::error::{Error, ErrorKind, Result};

/// Of a hundred files, at most so many may skip a mode.
const SKIPS_PER_CENT_MAX: usize = 5;

/// How long a record of a file may take in one mode. It takes milliseconds; one that hangs is named instead of hanging the suite. Not so the
/// whole file: on a machine that is busy with other things it may take long.
const RECORD_LIMIT_MS: u64 = 60_000;

/// The modes that showed in at least one file.
type ShownModes = Arc<Mutex<BTreeSet<&'static str>>>;

/// The modes of these names; all modes, where none is named.
pub fn modes_named(names: &[String]) -> Result<Vec<&'static Mode>> {
    match names {
        [] => Ok(MODES.iter().collect()),
        names => names.iter().map(|name| mode(name).ok_or_else(|| unknown_mode(name))).collect(),
    }
}

/// `flott test`: runs files and folders; with `update`, writes the actual results of the default mode into the files. A record that
/// is to succeed and fails is named and left as it is.
pub fn run_tests(paths: &[String], modes: &[&'static Mode], update: bool) -> Result<ExitCode> {
    let files = find_files(paths)?;
    if update {
        let mut failed = false;
        for file in files {
            let name = file.path.display().to_string();
            let failures = within_limit(&name, move |_| update_file(&file))??;
            talk!("updated {name}");
            failures.iter().for_each(|failure| talk!("left as it is, for it fails: {failure}"));
            failed |= !failures.is_empty();
        }
        return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let conclusion = run(&Arguments::default(), &files, modes, &ShownModes::default());
    // Not libtest's own status: `flott` ends with 1 whenever something failed.
    Ok(if conclusion.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// All files below a folder in all modes, with the arguments of `cargo test`: for the project's own tests. A mode that shows in no file
/// fails too.
pub fn run_folder(folder: &str) -> ExitCode {
    let files = match find_files(&[folder.to_string()]) {
        Ok(files) => files,
        Err(error) => {
            talk!("{}", error.render());
            return ExitCode::FAILURE;
        }
    };
    let arguments = Arguments::from_args();
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list && !arguments.ignored;
    if whole && let Err(complaint) = check_skips(&files) {
        talk!("{complaint}");
        return ExitCode::FAILURE;
    }
    let shown = ShownModes::default();
    let conclusion = run(&arguments, &files, &MODES.iter().collect::<Vec<_>>(), &shown);
    let shown = shown.lock().expect("no holder of this lock panics");
    let silent = MODES.iter().find(|mode| mode.proof != Proof::None && !shown.contains(mode.name));
    match silent {
        Some(mode) if whole && !conclusion.has_failed() => {
            talk!("mode {} took effect in no file: {}", mode.name, mode.doc);
            ExitCode::FAILURE
        }
        _ => conclusion.exit_code(),
    }
}

/// Names what is skipped, and refuses when it is too much.
fn check_skips(files: &[TestFile]) -> std::result::Result<(), String> {
    let skipping = files.iter().filter(|file| !file.skips.is_empty()).collect::<Vec<_>>();
    for file in &skipping {
        for (mode, reason) in &file.skips {
            talk!("skipped: {} in mode {mode}: {reason}", file.path.display());
        }
    }
    if skipping.len() * 100 > files.len() * SKIPS_PER_CENT_MAX {
        return Err(format!("{} of {} files skip a mode: at most {SKIPS_PER_CENT_MAX}% may", skipping.len(), files.len()));
    }
    Ok(())
}

fn unknown_mode(name: &str) -> Error {
    let known: Vec<&str> = MODES.iter().map(|mode| mode.name).collect();
    Error::new(ErrorKind::InvalidArgument, format!("unknown mode '{name}'")).with_hint(format!("one of {}", known.join(", ")))
}

fn run(arguments: &Arguments, files: &[TestFile], modes: &[&'static Mode], shown: &ShownModes) -> Conclusion {
    let mut trials = Vec::new();
    for file in files {
        for mode in modes.iter().filter(|mode| !file.skips(mode.name)) {
            let (file, mode, shown) = (file.clone(), *mode, Arc::clone(shown));
            let name = format!("{}::{}", file.path.display(), mode.name);
            trials.push(Trial::test(name.clone(), move || trial(&name, file, mode, &shown)));
        }
    }
    libtest_mimic::run(arguments, trials)
}

fn trial(name: &str, file: TestFile, mode: &'static Mode, shown: &ShownModes) -> std::result::Result<(), Failed> {
    let effect = within_limit(name, move |progress| run_file(&file, mode, progress)).map_err(|error| error.render())??;
    if effect == Effect::Shown {
        shown.lock().expect("no holder of this lock panics").insert(mode.name);
    }
    Ok(())
}

/// Does the work of a file on a thread of its own. If it hangs, the error says where, and what its jobs do.
fn within_limit<T: Send + 'static>(name: &str, work: impl FnOnce(&Progress) -> T + Send + 'static) -> Result<T> {
    let progress = Arc::new(Progress::new(name));
    let (told, mut last) = (Arc::clone(&progress), progress.place());
    let comes_on = || {
        let now = progress.place();
        std::mem::replace(&mut last, now.clone()) != now
    };
    run_within(RECORD_LIMIT_MS, "slt", move || work(&told), comes_on)?.ok_or_else(|| {
        let message = format!("{name} did not come on within {} s", RECORD_LIMIT_MS / 1000);
        Error::new(ErrorKind::Timeout, message).with_detail(format!("it hangs at {}; {}", progress.place(), progress.jobs()))
    })
}
