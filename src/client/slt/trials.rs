//! The list of trials: every file in every mode, run by libtest-mimic, whose output any Rust tool can read.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Failed, Trial};
use sqllogictest::{DefaultColumnType, Record, Runner, default_column_validator, default_normalizer, default_validator};

use super::database::Database;
use super::modes::{MODES, Mode, mode};
use crate::client::Session;
use crate::error::{Error, ErrorKind, Result};

/// Of a hundred files, at most so many may skip a mode.
const SKIPS_PER_CENT_MAX: usize = 5;

/// A file to run: all of it, or the record at a line with the statements before it.
#[derive(Debug, Clone)]
struct TestFile {
    path: PathBuf,
    line: Option<u32>,
    /// Modes that the file skips, with its reason: `# skip credit-1: reason`.
    skips: Vec<(String, String)>,
}

/// `flott test`: runs files and folders; with `update`, writes the actual results of the default mode into the files.
pub fn run_tests(paths: &[String], modes: &[String], update: bool) -> Result<ExitCode> {
    let files = find_files(paths)?;
    let modes: Vec<&'static Mode> = if modes.is_empty() {
        MODES.iter().collect()
    } else {
        modes.iter().map(|name| mode(name).ok_or_else(|| unknown_mode(name))).collect::<Result<_>>()?
    };
    if update {
        for file in &files {
            update_file(file)?;
            eprintln!("updated {}", file.path.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let conclusion = libtest_mimic::run(&Arguments::default(), trials(&files, &modes));
    Ok(conclusion.exit_code())
}

/// All files below a folder in all modes, with the arguments of `cargo test`: for the project's own tests.
pub fn run_folder(folder: &str) -> ExitCode {
    let files = match find_files(&[folder.to_string()]) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("{}", error.render());
            return ExitCode::FAILURE;
        }
    };
    let skipping = files.iter().filter(|file| !file.skips.is_empty()).count();
    if skipping * 100 > files.len() * SKIPS_PER_CENT_MAX {
        eprintln!("{skipping} of {} files skip a mode: at most {SKIPS_PER_CENT_MAX}% may", files.len());
        return ExitCode::FAILURE;
    }
    for file in files.iter().filter(|file| !file.skips.is_empty()) {
        for (mode, reason) in &file.skips {
            eprintln!("skipped: {} in mode {mode}: {reason}", file.path.display());
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials(&files, &MODES.iter().collect::<Vec<_>>())).exit_code()
}

fn unknown_mode(name: &str) -> Error {
    let known: Vec<&str> = MODES.iter().map(|mode| mode.name).collect();
    Error::new(ErrorKind::InvalidArgument, format!("unknown mode '{name}'")).with_hint(format!("one of {}", known.join(", ")))
}

fn find_files(paths: &[String]) -> Result<Vec<TestFile>> {
    let mut found = Vec::new();
    for path in paths {
        let (path, line) = match path.rsplit_once(':') {
            Some((file, line)) if line.chars().all(|c| c.is_ascii_digit()) && !line.is_empty() => (file, line.parse().ok()),
            _ => (path.as_str(), None),
        };
        collect(Path::new(path), line, &mut found)?;
    }
    if found.is_empty() {
        return Err(Error::new(ErrorKind::FileNotFound, format!("no *.slt file in {}", paths.join(", "))));
    }
    Ok(found)
}

fn collect(path: &Path, line: Option<u32>, found: &mut Vec<TestFile>) -> Result<()> {
    if !path.is_dir() {
        let text = std::fs::read_to_string(path).map_err(|cause| {
            let error = Error::from(cause);
            Error::new(error.kind(), format!("cannot read '{}'", path.display())).with_detail(error.message().to_string())
        })?;
        found.push(TestFile { path: path.to_path_buf(), line, skips: skips(&text) });
        return Ok(());
    }
    let mut entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Files whose name begins with `_` are included by others.
        if entry.is_dir() || (name.ends_with(".slt") && !name.starts_with('_')) {
            collect(&entry, None, found)?;
        }
    }
    Ok(())
}

fn skips(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# skip "));
    lines.filter_map(|rest| rest.split_once(':')).map(|(mode, why)| (mode.trim().to_string(), why.trim().to_string())).collect()
}

fn trials(files: &[TestFile], modes: &[&'static Mode]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for file in files {
        for mode in modes {
            if file.skips.iter().any(|(skipped, _)| skipped == mode.name) {
                continue;
            }
            let (file, mode) = (file.clone(), *mode);
            let name = format!("{}::{}", file.path.display(), mode.name);
            trials.push(Trial::test(name, move || run_file(&file, mode)));
        }
    }
    trials
}

/// Runs a file in a mode on a runtime of its own.
fn run_file(file: &TestFile, mode: &'static Mode) -> std::result::Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let session: Arc<Mutex<Option<Session>>> = Arc::default();
        let mut runner = runner(file, mode, &session);
        let records = sqllogictest::parse_file::<DefaultColumnType>(&file.path)?;
        for record in records.into_iter().filter(|record| wanted(record, file.line)) {
            if matches!(record, Record::Halt { .. }) {
                break;
            }
            runner.run_async(record).await.map_err(|error| Failed::from(error.display(false).to_string()))?;
        }
        let proven = session.lock().expect("no holder of this lock panics").take();
        if let Some(session) = proven {
            session.prove(mode.proof).await.map_err(|error| Failed::from(format!("mode {}: {}", mode.name, error.render())))?;
        }
        runner.shutdown_async().await;
        Ok(())
    })
}

fn runner(
    file: &TestFile,
    mode: &'static Mode,
    session: &Arc<Mutex<Option<Session>>>,
) -> Runner<Database, impl sqllogictest::MakeConnection<Conn = Database>> {
    let (path, session) = (file.path.clone(), Arc::clone(session));
    let mut runner = Runner::new(move || {
        let database = Database::new(&path, mode);
        if let Ok(database) = &database {
            session.lock().expect("no holder of this lock panics").get_or_insert(database.session().clone());
        }
        async move { database }
    });
    runner.add_label(mode.name);
    runner
}

/// Everything; or, for one line, all statements before it and the record that begins at or just before it.
fn wanted(record: &Record<DefaultColumnType>, line: Option<u32>) -> bool {
    let Some(line) = line else { return true };
    match record {
        Record::Statement { loc, .. } => loc.line() <= line,
        Record::Query { loc, sql, .. } => loc.line() <= line && line <= loc.line() + sql.lines().count() as u32 + 1,
        _ => true,
    }
}

fn update_file(file: &TestFile) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let default = MODES.first().expect("there are modes");
    runtime.block_on(async {
        let session = Arc::default();
        let mut runner = runner(file, default, &session);
        let outcome = runner
            .update_test_file(&file.path, " ", default_validator, default_normalizer, default_column_validator)
            .await
            .map_err(|error| {
                Error::new(ErrorKind::InvalidArgument, format!("cannot update '{}'", file.path.display()))
                    .with_detail(error.to_string())
            });
        runner.shutdown_async().await;
        outcome
    })
}
