//! What a script costs: it runs in a process of its own, whose time and memory are read from Linux's `/proc`.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time and waits for a process")]

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flott::{Outcome, Session};

/// The argument that makes the program run one script.
const RUN_SCRIPT: &str = "--run-script";

/// What the programs' functions give.
pub type Fallible<T> = Result<T, Box<dyn Error>>;

/// What a run needed.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each program reads what it shows")]
pub struct Usage {
    /// From the start of the process to its end.
    pub wall: Duration,
    /// User and system time.
    pub cpu: Duration,
    /// The most resident memory, in bytes.
    pub memory: u64,
    /// Bytes that went to disk.
    pub written: u64,
}

/// Writes to standard output.
pub fn print(text: &str) -> Fallible<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// Runs the script that the arguments name, if the program was started for that: the statements of `flott run`, with what `register` adds
/// to the session. A program calls it first, and ends when it says so.
pub fn runs_script(register: impl FnOnce(&Session) -> flott::Result<()>) -> Fallible<bool> {
    let arguments = std::env::args().collect::<Vec<_>>();
    let [_, option, script, parallelism] = arguments.as_slice() else { return Ok(false) };
    if option != RUN_SCRIPT {
        return Ok(false);
    }
    let session = Session::builder().set("parallelism.default", parallelism)?.build();
    register(&session)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Outcome::Job(job) = session.execute(&fs::read_to_string(script)?).await?.outcome {
            job.wait().await?;
        }
        Ok(true)
    })
}

/// Runs a script to its end, in a process of its own.
pub fn run(script: &Path, parallelism: u32) -> Fallible<Usage> {
    let cpu_before = cpu_of_children();
    let started = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .arg(RUN_SCRIPT)
        .arg(script)
        .arg(parallelism.to_string())
        .stdout(Stdio::null())
        .spawn()?;
    let (mut memory, mut written) = (0, 0);
    let status = loop {
        memory = memory.max(peak_memory(child.id()).unwrap_or(0));
        written = written.max(bytes_written(child.id()).unwrap_or(0));
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let wall = started.elapsed();
    if !status.success() {
        return Err(format!("{} failed: {status}", script.display()).into());
    }
    let cpu = cpu_of_children().zip(cpu_before).map_or(wall, |(after, before)| after - before);
    Ok(Usage { wall, cpu, memory, written })
}

/// Runs a script some times; the run that took the least CPU time counts.
pub fn best_of(runs: usize, script: &Path, parallelism: u32) -> Fallible<Usage> {
    let usages = (0..runs).map(|_| run(script, parallelism)).collect::<Fallible<Vec<Usage>>>()?;
    usages.into_iter().min_by_key(|usage| usage.cpu).ok_or_else(|| "there is at least one run".into())
}

/// User and system time of all children that have ended, from Linux's `/proc`; none on other systems.
fn cpu_of_children() -> Option<Duration> {
    /// Clock ticks last 10 ms on every Linux that there is.
    const TICK: Duration = Duration::from_millis(10);
    let status = fs::read_to_string("/proc/self/stat").ok()?;
    // After the name in parentheses: the state is the first field, the children's times are the 14th and 15th.
    let fields: Vec<&str> = status.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(13)?.parse::<u32>().ok()? + fields.get(14)?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

/// The most resident memory of a process so far, in bytes, from Linux's `/proc`.
fn peak_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Bytes that a process has had written to disk so far, from Linux's `/proc`.
fn bytes_written(process: u32) -> Option<u64> {
    let counts = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    counts.lines().find_map(|line| line.strip_prefix("write_bytes:"))?.trim().parse().ok()
}
