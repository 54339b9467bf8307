//! `--restore` as a shell sees it: which statement a checkpoint goes to, and what is said of the others.

use std::path::Path;

use super::{check, run, stderr, stdout};

const INSERT: &str = "INSERT INTO o SELECT a + 1 FROM (VALUES (1), (2)) AS t (a);";

fn script(folder: &Path, name: &str, statements: &str) -> String {
    let path = folder.join(name);
    let text = format!(
        "SET 'execution.checkpointing.interval' = '1 h';
         SET 'execution.checkpointing.dir' = 'checkpoints';
         SET 'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION';
         CREATE TABLE o (a INT) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'csv');
         {statements}"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn rows(folder: &Path) -> usize {
    let parts = std::fs::read_dir(folder.join("out")).unwrap().map(|part| part.unwrap().path());
    parts.map(|part| std::fs::read_to_string(part).unwrap().lines().count()).sum()
}

#[test]
fn the_same_command_starts_a_job_and_goes_on_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let insert = script(folder.path(), "insert.sql", INSERT);
    let checkpoints = folder.path().join("checkpoints").display().to_string();
    let anew = format!("begins anew: there is no complete checkpoint in '{checkpoints}' yet");
    check(&["run", &insert, "--restore", &checkpoints], 0, "", &anew);
    assert_eq!(rows(folder.path()), 2);
    let again = run(&["run", &insert, "--restore", &checkpoints]);
    assert_eq!((again.status.code(), rows(folder.path())), (Some(0), 2), "{}", stderr(&again));
    assert!(!stderr(&again).contains("anew"), "{}", stderr(&again));
    let elsewhere = folder.path().join("chekpoints").display().to_string();
    check(&["run", &insert, "--restore", &elsewhere], 1, "", "chekpoints");
    assert_eq!(rows(folder.path()), 2);
}

#[test]
fn a_checkpoint_goes_to_the_statement_that_took_it() {
    let folder = tempfile::tempdir().unwrap();
    let insert = script(folder.path(), "insert.sql", INSERT);
    check(&["run", &insert], 0, "", "the state of the job is kept in");
    let job = std::fs::read_dir(folder.path().join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    let job = job.display().to_string();
    let both = script(folder.path(), "both.sql", &format!("SELECT a FROM (VALUES (7)) AS t (a); {INSERT}"));
    let restored = run(&["run", &both, "--restore", &job]);
    assert_eq!((restored.status.code(), stdout(&restored).as_str()), (Some(0), "a\n7\n"), "{}", stderr(&restored));
    assert!(stderr(&restored).contains("job 'collect' begins anew"), "{}", stderr(&restored));
    assert_eq!(rows(folder.path()), 2, "the INSERT had finished");
    let select = script(folder.path(), "select.sql", "SELECT a FROM (VALUES (7)) AS t (a);");
    check(&["run", &select, "--restore", &job], 1, "", "belongs to no statement of the script");
}
