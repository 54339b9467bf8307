//! Timers by script.

use std::error::Error as StdError;
use std::fmt::Write as _;

use goldenscript::{ArgumentConsumer, Command, Context};

use super::*;

/// Timer services as subtasks of an operator: `0` is there from the start, `restore` makes others.
struct Runner {
    service: TimerService,
    snapshots: Vec<StateTableSnapshot>,
}

type Failure = Box<dyn StdError>;

/// `key=a ns=5 group=3`, then the timestamp: `register 10 key=a`.
fn timer(args: &mut ArgumentConsumer<'_>) -> Result<Timer, Failure> {
    let key = args.take_key("key").map_or(TimerKey::Group, |key| TimerKey::Key(key.as_bytes().into()));
    let namespace = args.take_key("ns").map_or(Ok(0), str::parse)?;
    let group = KeyGroup(args.take_key("group").map_or(Ok(0), str::parse)?);
    let timestamp = args.next_pos().ok_or("a time is missing")?.parse()?;
    Ok(Timer { timestamp, group, key, namespace })
}

fn show(timers: &[Timer]) -> String {
    let mut out = String::new();
    for Timer { timestamp, group, key, namespace } in timers {
        let key = match key {
            TimerKey::Group => "all keys".to_string(),
            TimerKey::Key(key) => format!("key {}", String::from_utf8_lossy(key)),
        };
        let _ = writeln!(out, "{timestamp} → {key} of group {group}, namespace {namespace}");
    }
    out
}

fn next(time: Option<i64>) -> String {
    time.map_or("none".to_string(), |time| time.to_string())
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Result<String, Failure> {
        let mut args = command.consume_args();
        let service = &mut self.service;
        let said = |what: bool| if what { "yes\n".to_string() } else { "no\n".to_string() };
        Ok(match command.name.as_str() {
            "register" => said(service.register_event_time(timer(&mut args)?)),
            "delete" => said(service.delete_event_time(&timer(&mut args)?)),
            "register-processing" => said(service.register_processing_time(timer(&mut args)?)),
            "delete-processing" => said(service.delete_processing_time(&timer(&mut args)?)),
            "watermark" => {
                let watermark = args.next_pos().ok_or("a time is missing")?.parse()?;
                show(&service.advance_watermark(Watermark(watermark)))
            }
            "clock" => show(&service.advance_processing_time(args.next_pos().ok_or("a time is missing")?.parse()?)),
            "state" => format!(
                "next event time {}, next processing time {}, {} bytes\n",
                next(service.next_event_time()),
                next(service.next_processing_time()),
                service.bytes()
            ),
            "snapshot" => {
                let snapshot = service.snapshot()?;
                let rows: usize = snapshot.rows().unwrap().iter().map(RecordBatch::num_rows).sum();
                self.snapshots.push(snapshot);
                *service = TimerService::default();
                format!("{rows} timers\n")
            }
            "restore" => {
                let start = args.take_key("from").ok_or("from is missing")?.parse()?;
                let end = args.take_key("to").ok_or("to is missing")?.parse()?;
                *service = TimerService::default();
                for snapshot in &self.snapshots {
                    service.restore(snapshot, KeyGroupRange { start, end })?;
                }
                String::new()
            }
            other => return Err(format!("unknown command {other}").into()),
        })
    }
}

fn script(name: &str) {
    let path = format!("{}/src/runtime/time/testscripts/timers/{name}", env!("CARGO_MANIFEST_DIR"));
    goldenscript::run(&mut Runner { service: TimerService::default(), snapshots: Vec::new() }, path).unwrap();
}

#[test]
fn timers_fire_once_and_in_order() {
    script("timers_fire_once_and_in_order");
}

#[test]
fn timers_move_with_their_key_group() {
    script("timers_move_with_their_key_group");
}

#[test]
fn services_are_apart_and_the_clock_hears_the_earliest() {
    let mut manager = TimeServiceManager::default();
    let timer = |timestamp| Timer { timestamp, group: KeyGroup(0), key: TimerKey::Group, namespace: 0 };
    manager.service("cleanup").register_processing_time(timer(9));
    manager.service("windows").register_processing_time(timer(5));
    assert_eq!(manager.next_processing_time(), Some(5));
    assert!(manager.service("cleanup").advance_processing_time(5).is_empty());
    assert_eq!(manager.service("windows").advance_processing_time(5).len(), 1);
    assert_eq!(manager.state().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["cleanup", "windows"]);
}
