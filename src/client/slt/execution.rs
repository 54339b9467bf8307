//! One file in one mode: its records in order, then the proof that the mode took effect.

use std::sync::{Arc, Mutex};

use libtest_mimic::Failed;
use sqllogictest::{
    DefaultColumnType, ExpectedError, Injected, QueryExpect, Record, RecordOutput, Runner, StatementExpect,
    default_column_validator, default_validator, parse_file, update_record_with_output,
};

use super::database::Database;
use super::files::TestFile;
use super::modes::{MODES, Mode};
use super::progress::Progress;
use super::records::without_order;
use crate::client::Session;
use crate::error::{Error, ErrorKind, Result};

type SltRecord = Record<DefaultColumnType>;

/// Whether a mode showed in the counters of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It did.
    Shown,
    /// The file ran nothing that could show it.
    NotShown,
}

/// Runs a file in a mode on a runtime of its own. `progress` says at any time where it is.
pub fn run_file(file: &TestFile, mode: &'static Mode, progress: &Progress) -> std::result::Result<Effect, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut runner = runner(file, mode, progress.sessions());
        let outcome = run_records(file, mode, &mut runner, progress).await;
        let proof = match &outcome {
            Ok(()) => prove(mode, progress.sessions()).await,
            Err(_) => Ok(Effect::NotShown),
        };
        runner.shutdown_async().await;
        outcome.and(proof)
    })
}

async fn run_records(
    file: &TestFile,
    mode: &'static Mode,
    runner: &mut Runner<Database, impl sqllogictest::MakeConnection<Conn = Database>>,
    progress: &Progress,
) -> std::result::Result<(), Failed> {
    for record in parse_file::<DefaultColumnType>(&file.path)?.into_iter().filter(|record| wanted(record, file.line)) {
        if matches!(record, Record::Halt { .. }) {
            break;
        }
        if let Record::Statement { loc, .. } | Record::Query { loc, .. } = &record {
            progress.comes_to(loc.to_string());
        }
        let record = if mode.shows_changes { record } else { without_order(record) };
        runner.run_async(record).await.map_err(|error| error.display(false).to_string())?;
    }
    Ok(())
}

/// The sessions of a file: one for each connection that it names.
pub(super) type Sessions = Arc<Mutex<Vec<Session>>>;

async fn prove(mode: &Mode, sessions: &Sessions) -> std::result::Result<Effect, Failed> {
    let sessions = std::mem::take(&mut *sessions.lock().expect("no holder of this lock panics"));
    let mut effect = Effect::NotShown;
    for session in sessions {
        if mode.proof.check(&session).await.map_err(|error| format!("mode {}: {}", mode.name, error.render()))? {
            effect = Effect::Shown;
        }
    }
    Ok(effect)
}

fn runner(
    file: &TestFile,
    mode: &'static Mode,
    sessions: &Sessions,
) -> Runner<Database, impl sqllogictest::MakeConnection<Conn = Database> + use<>> {
    let (path, sessions) = (file.path.clone(), Arc::clone(sessions));
    let mut runner = Runner::new(move || {
        let database = Database::new(&path, mode);
        if let Ok(database) = &database {
            sessions.lock().expect("no holder of this lock panics").push(database.session().clone());
        }
        async move { database.map_err(super::database::ShownError::from) }
    });
    runner.with_normalizer(as_written);
    runner
}

/// Values are compared as they are: spaces count, but for those at the end of a line.
#[allow(clippy::ptr_arg)] // the signature is sqllogictest's
fn as_written(value: &String) -> String {
    value.trim_end().to_string()
}

/// Everything; or, for one line, all statements before it and the record that spans it.
fn wanted(record: &SltRecord, line: Option<u32>) -> bool {
    let Some(line) = line else { return true };
    match record {
        Record::Statement { loc, .. } | Record::System { loc, .. } => loc.line() <= line,
        Record::Query { .. } => spans(record, line),
        _ => true,
    }
}

/// Whether a line belongs to a statement or a query, expected results included.
fn spans(record: &SltRecord, line: u32) -> bool {
    let (loc, sql, results) = match record {
        Record::Statement { loc, sql, expected: StatementExpect::Error(ExpectedError::Multiline(text)), .. } => {
            (loc, sql, text.lines().count() + 1)
        }
        Record::Statement { loc, sql, .. } => (loc, sql, 0),
        Record::Query { loc, sql, expected: QueryExpect::Results { results, .. }, .. } => (loc, sql, results.len() + 1),
        Record::Query { loc, sql, expected: QueryExpect::Error(ExpectedError::Multiline(text)), .. } => {
            (loc, sql, text.lines().count() + 1)
        }
        Record::Query { loc, sql, .. } => (loc, sql, 0),
        _ => return false,
    };
    (loc.line()..=loc.line() + (sql.lines().count() + results) as u32).contains(&line)
}

/// Writes the actual results of the default mode into a file, or only those of the record at a line. Included files stay as they are,
/// and so do records that are to succeed and fail: the result says which and why.
pub fn update_file(file: &TestFile) -> Result<Vec<String>> {
    let failed = |cause: String| {
        Error::new(ErrorKind::InvalidArgument, format!("cannot update '{}'", file.path.display())).with_detail(cause)
    };
    let records = parse_file::<DefaultColumnType>(&file.path).map_err(|error| failed(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (text, failures) = runtime.block_on(async {
        let mut runner = runner(file, MODES.first().expect("there are modes"), &Sessions::default());
        let (mut text, mut includes, mut halted) = (String::new(), 0, false);
        let mut failures = Vec::new();
        for record in records {
            match &record {
                Record::Injected(Injected::BeginInclude(_)) => includes += 1,
                Record::Injected(Injected::EndInclude(_)) => includes -= 1,
                Record::Halt { .. } => halted = true,
                _ => {}
            }
            let runs = !halted && !matches!(record, Record::Injected(_) | Record::Include { .. }) && wanted(&record, file.line);
            let is_asked_for = file.line.is_none_or(|line| spans(&record, line));
            let updated = match runs {
                true if is_asked_for => updated(&mut runner, record, &mut failures).await,
                true => {
                    runner.apply_record(record.clone()).await;
                    record
                }
                false => record,
            };
            if includes == 0 && !matches!(updated, Record::Injected(_)) {
                text.push_str(&format!("{updated}\n"));
            }
        }
        runner.shutdown_async().await;
        (text, failures)
    });
    std::fs::write(&file.path, text.trim_end().to_string() + "\n")?;
    Ok(failures)
}

/// A record with what it gives now as its expectation.
async fn updated(
    runner: &mut Runner<Database, impl sqllogictest::MakeConnection<Conn = Database>>,
    record: SltRecord,
    failures: &mut Vec<String>,
) -> SltRecord {
    let output = runner.apply_record(record.clone()).await;
    if let Some(failure) = unexpected_failure(&record, &output) {
        failures.push(failure);
        return record;
    }
    if keeps_sqlstate(&record, &output) {
        return record;
    }
    let separator = " ";
    update_record_with_output(&record, &output, separator, default_validator, as_written, default_column_validator)
        .unwrap_or(record)
}

/// The place and the error of a record that is to succeed and fails.
fn unexpected_failure(record: &SltRecord, output: &RecordOutput<DefaultColumnType>) -> Option<String> {
    let (RecordOutput::Statement { error: Some(error), .. } | RecordOutput::Query { error: Some(error), .. }) = output else {
        return None;
    };
    match record {
        Record::Statement { expected: StatementExpect::Error(_), .. } | Record::Query { expected: QueryExpect::Error(_), .. } => {
            None
        }
        Record::Statement { loc, .. } | Record::Query { loc, .. } => Some(format!("{loc}: {error}")),
        _ => None,
    }
}

/// Whether a record expects an SQLSTATE and gets it.
fn keeps_sqlstate(record: &SltRecord, output: &RecordOutput<DefaultColumnType>) -> bool {
    let expected = match record {
        Record::Statement { expected: StatementExpect::Error(expected), .. } => expected,
        Record::Query { expected: QueryExpect::Error(expected), .. } => expected,
        _ => return false,
    };
    let (
        ExpectedError::SqlState(state),
        RecordOutput::Statement { error: Some(error), .. } | RecordOutput::Query { error: Some(error), .. },
    ) = (expected, output)
    else {
        return false;
    };
    error.to_string().starts_with(&format!("error ({state})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "statement ok\nCREATE VIEW v AS\nSELECT 1 AS a\n\nquery T\nSELECT a FROM v\n----\n2\n\nquery T\nSELECT 5\n----\n6\n\nstatement error (42703)\nSELECT b FROM v\n";

    fn file(line: Option<u32>) -> (tempfile::TempDir, TestFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.slt");
        std::fs::write(&path, TEXT).unwrap();
        (folder, TestFile { path, line, skips: Vec::new() })
    }

    #[test]
    fn an_update_writes_what_comes_out_and_keeps_the_rest() {
        let (_folder, file) = file(None);
        update_file(&file).unwrap();
        let expected = TEXT.replace("----\n2\n", "----\n1\n").replace("----\n6\n", "----\n5\n");
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), expected);
        assert!(run_file(&file, &MODES[0], &Progress::new("")).is_ok());
    }

    #[test]
    fn an_update_names_what_fails_and_leaves_it() {
        let (_folder, file) = file(None);
        let text = "statement ok\nCREATE VIEW v AS SELECT nope\n\nquery T\nSELECT 1\n----\n2\n";
        std::fs::write(&file.path, text).unwrap();
        let failures = update_file(&file).unwrap();
        assert!(matches!(failures.as_slice(), [only] if only.contains("t.slt:1") && only.contains("nope")), "{failures:?}");
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), text.replace("----\n2", "----\n1"));
    }

    #[test]
    fn an_update_of_a_line_writes_one_record() {
        let (_folder, file) = file(Some(8));
        update_file(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), TEXT.replace("----\n2\n", "----\n1\n"));
        assert!(run_file(&file, &MODES[0], &Progress::new("")).is_ok());
        assert!(run_file(&TestFile { line: None, ..file }, &MODES[0], &Progress::new("")).is_err());
    }
}
