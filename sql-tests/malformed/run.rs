//! Runs a case and checks what every one of them must keep: it ends in time, nothing panics, a failure is one error with a documented exit
//! status, and no file becomes visible in a folder named `out` unless the statement succeeded.

#![expect(clippy::disallowed_methods, reason = "it watches how long another process takes, by the real clock")]

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::case::{Case, Expectation, trimmed};

/// A case that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20);
/// How often a running case is looked at.
const INTERVAL: Duration = Duration::from_millis(5);
/// Longer output is cut: a case is to be read.
const OUTPUT_CHARS_MAX: usize = 4_000;

/// Whether a command for `sh` succeeds.
pub fn succeeds(command: &str) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    shell(command, folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn shell(script: &str, folder: &Path) -> Command {
    let flott = Path::new(env!("CARGO_BIN_EXE_flott"));
    let programs = std::env::var("PATH").unwrap_or_default();
    let binaries = flott.parent().expect("the binary lies in a folder").display();
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(folder).stdin(Stdio::null()).env("PATH", format!("{binaries}:{programs}"));
    command.env("TERM", "dumb").env_remove("RUST_BACKTRACE").process_group(0);
    command
}

/// Runs a case in a folder of its own.
pub fn run(case: &Case) -> Result<Expectation, String> {
    let outer = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = outer.path().join("case");
    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    for (name, content) in case.contents() {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).map_err(|error| error.to_string())?;
        fs::write(path, content).map_err(|error| error.to_string())?;
    }
    let (stdout, stderr) = (outer.path().join("stdout"), outer.path().join("stderr"));
    let output = |path: &Path| File::create(path).map_err(|error| error.to_string());
    let child = shell(&case.script(), &folder).stdout(output(&stdout)?).stderr(output(&stderr)?).spawn();
    let status = wait(child.map_err(|error| error.to_string())?)?;
    let text = |path: &Path| -> Result<String, String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&bytes).replace(&*folder.to_string_lossy(), "$DIR");
        let text: String = text.chars().take(OUTPUT_CHARS_MAX).collect();
        Ok(without_random_names(&without_growing_lists(&trimmed(&text))))
    };
    let actual = Expectation { status: status.code().unwrap_or(-1), stdout: text(&stdout)?, stderr: text(&stderr)? };
    if actual.status != 0 && has_visible_file(&folder.join("out")) {
        return Err(format!("a file is visible although the statement failed:\n{actual}"));
    }
    Ok(actual)
}

/// What comes before lists that grow with the engine: the rest of such a line is not compared.
const GROWING_LISTS: [&str; 5] =
    ["available are ", "available formats: ", "options are ", "one of 'blackhole'", "expected TABLES, "];

fn without_growing_lists(text: &str) -> String {
    let cut = |line: &str| match GROWING_LISTS.iter().find_map(|list| line.find(list).map(|at| at + list.len())) {
        Some(at) => format!("{}[…]", &line[..at]),
        None => line.to_string(),
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// Part files have random names: `part-<id>-0-0`.
fn without_random_names(text: &str) -> String {
    /// Characters of an id.
    const ID_CHARS: usize = 36;
    let mut parts = text.split("part-");
    let mut shown = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let is_id = part.is_char_boundary(ID_CHARS) && part[..ID_CHARS].chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        shown.push_str("part-");
        shown.push_str(if is_id { "$ID" } else { "" });
        shown.push_str(if is_id { &part[ID_CHARS..] } else { part });
    }
    shown
}

fn wait(mut child: Child) -> Result<ExitStatus, String> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if start.elapsed() > LIMIT {
            // The shell and all that it started.
            let _ = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
            return Err(format!("it did not end within {} s", LIMIT.as_secs()));
        }
        std::thread::sleep(INTERVAL);
    }
}

fn has_visible_file(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if path.is_dir() { has_visible_file(&path) } else { !hidden }
    })
}

/// What every case must keep, whatever it expects.
pub fn check(case: &Case, actual: &Expectation) -> Result<(), String> {
    let errors = actual.stderr.lines().filter(|line| line.starts_with("error")).count();
    let problem = if actual.stderr.contains("panicked") || actual.stdout.contains("panicked") {
        "something panicked"
    } else if ![0, 1, 2, 77].contains(&actual.status) {
        "the exit status is none of those that --help lists"
    } else if actual.status != 0 && errors != 1 {
        "a failure must be one error"
    } else if actual.status == 0 && errors != 0 {
        "an error must show in the exit status"
    } else if actual.stderr.contains("error (XX000)") {
        "bad input must not be taken for a fault of the engine"
    } else {
        return Ok(());
    };
    Err(format!("{problem}: {}\n{actual}", case.title))
}
