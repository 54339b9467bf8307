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

const ENDLESS: &str = "SET 'execution.checkpointing.interval' = '50 ms';
    CREATE TABLE t (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');
    CREATE TABLE s (n BIGINT) WITH ('connector' = 'blackhole');
    INSERT INTO s SELECT n FROM t;";

/// Waits until a process has made itself the owner of a job's checkpoints.
fn wait_for_owner(checkpoints: &Path, process: &mut std::process::Child) {
    let number = format!("\"process\":{}", process.id());
    loop {
        let jobs = std::fs::read_dir(checkpoints).into_iter().flatten().flatten();
        let mut owners = jobs.filter_map(|job| std::fs::read_to_string(job.path().join("_job")).ok());
        if owners.any(|owner| owner.contains(&number)) {
            return;
        }
        assert!(process.try_wait().unwrap().is_none(), "it did not start");
        std::thread::yield_now();
    }
}

#[test]
fn a_running_job_keeps_others_from_its_checkpoints_until_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let endless = script(folder.path(), "endless.sql", ENDLESS);
    let checkpoints = folder.path().join("checkpoints");
    let mut first = super::flott(&["run", &endless]).spawn().unwrap();
    wait_for_owner(&checkpoints, &mut first);
    let restore = ["run", endless.as_str(), "--restore", checkpoints.to_str().unwrap()];
    let refused = run(&restore);
    let who = format!("process {} on ", first.id());
    assert!(refused.status.code() == Some(1) && stderr(&refused).contains(&who), "{}", stderr(&refused));
    // A process that was killed keeps nobody out.
    first.kill().unwrap();
    first.wait().unwrap();
    let mut second = super::flott(&restore).spawn().unwrap();
    wait_for_owner(&checkpoints, &mut second);
    second.kill().unwrap();
    second.wait().unwrap();
}

#[test]
fn what_cannot_be_read_of_another_job_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let insert = script(folder.path(), "insert.sql", INSERT);
    let checkpoints = folder.path().join("checkpoints");
    let restore = ["run", insert.as_str(), "--restore", checkpoints.to_str().unwrap()];
    assert_eq!(run(&restore).status.code(), Some(0));
    let torn = checkpoints.join("other/chk-1");
    std::fs::create_dir_all(&torn).unwrap();
    std::fs::write(torn.join("_metadata"), "half of").unwrap();
    let again = run(&restore);
    assert_eq!((again.status.code(), rows(folder.path())), (Some(0), 2), "{}", stderr(&again));
    assert!(stderr(&again).contains("is left alone: it has no header"), "{}", stderr(&again));
}
