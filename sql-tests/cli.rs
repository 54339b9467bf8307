//! The binary as a shell sees it: what it prints where, and the status that it ends with.
#![allow(clippy::unwrap_used)] // a test may fail so

mod plans;
mod restores;
mod sessions;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

const ENDLESS: &str = "CREATE TABLE t (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000');";

fn flott(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flott"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("RUST_BACKTRACE");
    command
}

fn run(arguments: &[&str]) -> Output {
    flott(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The status, what is printed, and what is complained of.
fn check(arguments: &[&str], status: i32, printed: &str, complaint: &str) {
    let output = run(arguments);
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{out}\n{err}");
    assert_eq!(out, printed, "{arguments:?}\n{err}");
    assert!(err.contains(complaint) && (err.is_empty() || !complaint.is_empty()), "{arguments:?}: {err}");
}

fn script(sql: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".sql").tempfile().unwrap();
    file.write_all(sql.as_bytes()).unwrap();
    file
}

#[test]
fn each_format_prints_its_own() {
    let sql = "SELECT k, COUNT(*) AS c FROM (VALUES ('a'), ('b,'), ('a')) AS t (k) GROUP BY k";
    let formats = [
        ("csv", "k,c\na,2\n\"b,\",1\n"),
        ("json", "{\"k\":\"a\",\"c\":2}\n{\"k\":\"b,\",\"c\":1}\n"),
        ("table", "+----+---+\n| k  | c |\n+----+---+\n| a  | 2 |\n| b, | 1 |\n+----+---+\n"),
        ("conformance", "# schema: k VARCHAR(2) NOT NULL, c BIGINT NOT NULL\na,2\n\"b,\",1\n"),
    ];
    for (format, printed) in formats {
        let output = run(&["--format", format, "-e", sql]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), printed), "{}", stderr(&output));
    }
    let nested =
        "SELECT ARRAY['a', NULL] AS a, MAP['k', ARRAY[1]] AS m, CAST(ROW(1, 'x') AS ROW<n INT, s STRING>) AS r, 1.5e0 AS d";
    let json = stdout(&run(&["--format", "json", "-e", nested]));
    assert_eq!(json, "{\"a\":[\"a\",null],\"m\":{\"k\":[1]},\"r\":{\"n\":1,\"s\":\"x\"},\"d\":1.5}\n");
    let changes = stdout(&run(&["--format", "changelog", "-e", "VALUES (1)"]));
    assert!(changes.ends_with("\n+I,1\n"), "{changes}");
}

#[test]
fn the_exit_status_tells_what_went_wrong() {
    check(&["-e", "SELECT nope"], 1, "", "42703");
    check(&["-e", "SELECT 1 / CAST('0' AS INT)"], 1, "", "22012");
    check(&["run", "/no/such/file.sql"], 1, "", "cannot read script '/no/such/file.sql'");
    check(&["--set", "parallelism.defaul=2", "-e", "SELECT 1"], 2, "", "parallelism.default");
    check(&["--set", "parallelism.default", "-e", "SELECT 1"], 2, "", "KEY=VALUE");
    check(&["--parallelism", "0", "-e", "SELECT 1"], 2, "", "parallelism.default");
    check(&["--format", "xml", "-e", "SELECT 1"], 2, "", "possible values");
    check(&["runn"], 2, "", "run");
    check(&["-e", "STOP JOB '0' WITH SAVEPOINT"], 1, "", "job '0' not found");
    let distinct_on = "SELECT DISTINCT ON (a) a FROM (VALUES (1)) AS t (a)";
    check(&["-e", distinct_on], 77, "", "DISTINCT ON is not supported");
}

#[test]
fn what_fails_before_its_first_row_prints_no_head() {
    let missing =
        "CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = '/nowhere/t.csv', 'format' = 'csv'); SELECT a FROM t";
    check(&["--format", "csv", "-e", missing], 1, "", "'/nowhere/t.csv'");
    let query = "SELECT COUNT(*) AS c FROM (VALUES (1)) AS t (a)";
    check(&["--restore", " ", "-e", query], 2, "", "--restore is given no path");
    check(&["--restore", "/nowhere", "--format", "csv", "-e", query], 1, "", "'/nowhere'");
}

#[test]
fn scripts_share_a_session_and_are_parsed_before_they_run() {
    let tables = script("CREATE VIEW v AS SELECT 42 AS n;");
    let query = script("SELECT n FROM v;");
    let (tables, query) = (tables.path().to_str().unwrap(), query.path().to_str().unwrap());
    check(&["run", tables, query, "--set", "parallelism.default=2"], 0, "n\n42\n", "");
    let broken = script("SELECT 1;\n-- a comment; with a semicolon\nSELEC 2;");
    check(&["run", broken.path().to_str().unwrap()], 1, "", "statement 2 does not parse; none was run");
    let failing = script("SELECT 1;\nSELECT nope;\nSELECT 3;");
    check(&["run", failing.path().to_str().unwrap()], 1, "EXPR$0\n1\n", "statement 2 failed; those before it were run");
}

#[test]
fn quit_ends_a_run_whatever_follows() {
    let first = script("SELECT 1; QUIT; SELECT nope;");
    let second = script("SELECT 2;");
    let (first, second) = (first.path().to_str().unwrap(), second.path().to_str().unwrap());
    check(&["run", first, second], 0, "EXPR$0\n1\n", "");
    check(&["-e", "EXIT", "-e", "SELECT 1"], 0, "", "");
}

#[test]
fn relative_paths_start_from_where_a_table_was_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    file("a/in.csv", "1\n");
    file("b/in.csv", "2\n");
    let create = "CREATE TABLE t (n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'in.csv', 'format' = 'csv');";
    let a = file("a/x.sql", create);
    let b = file(
        "b/y.sql",
        "CREATE TABLE taken LIKE t; CREATE TABLE own WITH ('path' = 'in.csv') LIKE t;
         SELECT n FROM t; SELECT n FROM taken; SELECT n FROM own; SELECT n FROM t /*+ OPTIONS('path' = './in.csv') */;",
    );
    let output = run(&["run", "--format", "csv", &a, &b]);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    let rows: Vec<&str> = printed.lines().filter(|line| line.parse::<i64>().is_ok()).collect();
    assert_eq!(rows, ["1", "1", "2", "2"], "{printed}");
}

#[test]
fn a_script_comes_through_a_pipe_too() {
    let mut child = flott(&[]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"CREATE VIEW v AS SELECT 1 AS a; SELECT a FROM v;").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "a\n1\n"));
}

#[test]
fn plans_are_explained_in_four_forms() {
    let file = script("CREATE VIEW v AS SELECT 1 AS a; SELECT a FROM v WHERE a > 0;");
    let file = file.path().to_str().unwrap();
    for (format, mark) in [("text", "=="), ("json", "{"), ("dot", "digraph"), ("mermaid", "flowchart")] {
        let output = run(&["explain", file, "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains(mark), "{format}: {}", stdout(&output));
    }
}

/// Starts an endless query and waits for its first line.
fn endless(arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let sql = format!("{ENDLESS} SELECT n FROM t");
    let mut child = flott(arguments).args(["-e", &sql]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..2 {
        lines.read_line(&mut line).unwrap();
    }
    assert!(line.starts_with("n\n"), "{line}");
    (child, lines)
}

#[test]
fn ctrl_c_ends_an_endless_query() {
    for rate in ["1000", "100000000"] {
        let sql =
            format!("CREATE TABLE t (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}'); SELECT n FROM t");
        let mut child = flott(&["-e", &sql]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut String::new()).unwrap();
        let reader = std::thread::Builder::new().spawn(move || std::io::copy(&mut lines, &mut std::io::sink())).unwrap();
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "at {rate} rows a second");
        reader.join().unwrap().unwrap();
    }
}

#[test]
fn a_reader_that_goes_ends_the_query_without_a_word() {
    for format in ["csv", "changelog", "json"] {
        let (child, lines) = if format == "csv" { endless(&[]) } else { started(format) };
        drop(lines);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{format}");
    }
}

/// What cannot be said is not said; the work and its status are the same.
#[test]
#[cfg(target_os = "linux")]
fn a_standard_error_that_takes_nothing_does_no_harm() {
    let deaf = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = flott(&["run", "examples/02_tumbling_window.sql"]).stderr(deaf()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "its notice of late rows is lost");
    assert!(stdout(&output).contains("2013-01-01 00:00:00.000,EWR,2,0,-1"));
    assert_eq!(flott(&["-e", "SELEC"]).stderr(deaf()).output().unwrap().status.code(), Some(1));
}

fn started(format: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let sql = format!("{ENDLESS} SELECT n FROM t");
    let mut child = flott(&["--format", format, "-e", &sql]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    (child, lines)
}

#[test]
fn help_is_there_for_every_command() {
    for arguments in [&["--help"][..], &["run", "--help"], &["explain", "--help"], &["test", "--help"], &["--version"]] {
        let output = run(arguments);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{arguments:?}");
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn a_terminated_process_leaves_no_hidden_files() {
    let folder = tempfile::tempdir().unwrap();
    let sql = format!(
        "{ENDLESS} CREATE TABLE out (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'csv', \
         'sink.rolling-policy.file-size' = '1 mb'); INSERT INTO out SELECT n FROM t; SELECT n FROM t",
        folder.path().display()
    );
    for (signal, status) in [("-TERM", 143), ("-INT", 130)] {
        let mut child = flott(&["-e", &sql]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut String::new()).unwrap();
        let reader = std::thread::Builder::new().spawn(move || std::io::copy(&mut lines, &mut std::io::sink())).unwrap();
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(status));
        reader.join().unwrap().unwrap();
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".inprogress")), "{left:?}");
    }
}

/// A table of five rows of which the last one is late, with the query behind it.
fn over_bids(query: &str) -> String {
    let bids = concat!(env!("CARGO_MANIFEST_DIR"), "/sql-tests/connectors/data/bids.json");
    format!(
        "CREATE TABLE bids (item STRING, price BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (
         'connector' = 'filesystem', 'path' = '{bids}', 'format' = 'json', 'scan.parallelism' = '1');
         CREATE TABLE late (price BIGINT, late_watermark TIMESTAMP(3)) WITH ('connector' = 'memory'); {query}"
    )
}

const WINDOWS: &str = "FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND)";

#[test]
fn late_rows_stand_below_the_result_and_in_the_table_for_them() {
    let windows = format!("SELECT window_start, SUM(price) AS p {WINDOWS} GROUP BY window_start, window_end;");
    let rows = "window_start,p\n2024-01-01 00:00:00.000,10\n2024-01-01 00:00:05.000,50\n2024-01-01 00:00:10.000,40\n";
    let dropped = "notice: 1 late row(s) were dropped by WindowAggregate[2], the latest 1 s too late";
    check(&["-e", &over_bids(&windows)], 0, rows, dropped);
    let insert = format!(
        "CREATE TABLE out (p BIGINT) WITH ('connector' = 'memory'); INSERT INTO out SELECT SUM(price) {WINDOWS} GROUP BY window_start, window_end;"
    );
    check(&["-e", &over_bids(&insert)], 0, "", dropped);
    let kept = format!("SET 'flott.late-rows.table' = 'late'; {insert} RESET 'flott.late-rows.table'; SELECT * FROM late;");
    check(&["-e", &over_bids(&kept)], 0, "price,late_watermark\n50,2024-01-01 00:00:11.000\n", dropped);
}

#[test]
fn allowed_lateness_without_late_firing_is_told_to_do_nothing() {
    let windows = format!("SELECT SUM(price) AS p {WINDOWS} GROUP BY window_start, window_end;");
    let set = |late: &str| format!("SET 'table.exec.emit.allow-lateness' = '10 s'; {late} {}", over_bids(&windows));
    check(
        &["-e", &set("")],
        0,
        "p\n10\n50\n40\n",
        "notice: 'table.exec.emit.allow-lateness' has no effect: rows are late at the end",
    );
    let late_fire = "SET 'table.exec.emit.late-fire.enabled' = 'true'; SET 'table.exec.emit.late-fire.delay' = '0 s';";
    check(&["-e", &set(late_fire)], 0, "p\n10\n100\n40\n", "");
}

#[test]
fn an_empty_result_of_windows_says_why() {
    let empty = |filter: &str, group: &str, why: &str| {
        let query = format!("SELECT SUM(price) AS p {WINDOWS} {filter} GROUP BY window_start, window_end {group}");
        check(&["-e", &over_bids(&query)], 0, "p\n", &format!("notice: the result is empty: {why}"));
    };
    empty("WHERE price > 99", "", "5 row(s) were read, and none of them came to WindowAggregate[2]");
    empty("", "HAVING SUM(price) > 99", "3 row(s) came out of WindowAggregate[2], and what comes behind it left none of them");
    empty(
        "WHERE ts <= CURRENT_WATERMARK(ts) AND item = 'b'",
        "",
        "all 1 row(s) that came to WindowAggregate[3] were late, the latest by 1 s",
    );
    let by_the_clock = "SELECT COUNT(*) AS p FROM (SELECT *, PROCTIME() AS pt FROM bids) GROUP BY TUMBLE(pt, INTERVAL '40' DAY)";
    let dropped =
        "notice: the result is empty: 5 row(s) came to WindowAggregate[3], and the input ended before the clock had passed";
    check(&["-e", &over_bids(by_the_clock)], 0, "p\n", dropped);
    let plain = "SELECT price FROM bids WHERE price > 99";
    check(&["-e", &over_bids(plain)], 0, "price\n", "");
}
