//! Drives endpoints by the scripts in `testscripts/` on a virtual clock and a single thread: each file is a scenario.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use goldenscript::Command;
use serde::{Deserialize, Serialize};

use super::*;
use crate::clock::{TokioExecutor, VirtualClock, sleep_for};
use crate::error::{Error, ErrorKind, Result};

type Log = Arc<Mutex<Vec<String>>>;

fn log(log: &Log, line: impl Into<String>) {
    log.lock().unwrap().push(line.into());
}

/// Adds up what it is told.
struct Counter {
    name: String,
    total: i64,
    start_fails: bool,
    stop_ms: u64,
    log: Log,
}

#[derive(Serialize, Deserialize)]
struct Add(i64);
#[derive(Serialize, Deserialize)]
struct TotalAfter(u64);
#[derive(Serialize, Deserialize)]
struct Forget;
#[derive(Serialize, Deserialize)]
struct Panic(String);
#[derive(Serialize, Deserialize)]
struct Lead(Option<u128>);

crate::rpc_call!(Add => i64, TotalAfter => i64, Forget => (), Panic => (), Lead => ());

impl RpcEndpoint for Counter {
    const GATEWAY: &'static str = "Counter";

    fn calls(table: CallTable<Self>) -> CallTable<Self> {
        table.with::<Add>().with::<TotalAfter>().with::<Forget>().with::<Panic>().with::<Lead>()
    }

    fn on_start(&mut self, main: &MainThread<Self>) -> Result<()> {
        main.assert_main_thread();
        log(&self.log, format!("{} starts", self.name));
        if self.start_fails { Err(Error::new(ErrorKind::Io, "the port is taken")) } else { Ok(()) }
    }

    fn on_stop(&mut self, main: &MainThread<Self>) -> BoxFuture<'static, Result<()>> {
        main.assert_main_thread();
        log(&self.log, format!("{} closes", self.name));
        let wait = sleep_for(Arc::clone(main.clock()), std::time::Duration::from_millis(self.stop_ms));
        async move {
            wait.await;
            Ok(())
        }
        .boxed()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        log(&self.log, format!("{} is gone with total {}", self.name, self.total));
    }
}

impl Handle<Add> for Counter {
    fn handle(&mut self, Add(n): Add, main: &MainThread<Self>) -> Answer<i64> {
        main.assert_main_thread();
        if n < 0 {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("{n} is negative"))).into();
        }
        self.total += n;
        Ok(self.total).into()
    }
}

impl Handle<TotalAfter> for Counter {
    fn handle(&mut self, TotalAfter(ms): TotalAfter, main: &MainThread<Self>) -> Answer<i64> {
        let (reply, answer) = Answer::later();
        main.schedule(Duration::from_millis(ms), |counter, main| {
            main.assert_main_thread();
            reply.send(Ok(counter.total));
        });
        answer
    }
}

impl Handle<Forget> for Counter {
    fn handle(&mut self, _: Forget, _: &MainThread<Self>) -> Answer<()> {
        Answer::later().1
    }
}

impl Handle<Panic> for Counter {
    fn handle(&mut self, Panic(text): Panic, _: &MainThread<Self>) -> Answer<()> {
        panic!("{text}")
    }
}

impl Handle<Lead> for Counter {
    fn handle(&mut self, Lead(token): Lead, main: &MainThread<Self>) -> Answer<()> {
        main.set_fencing_token(token.map(FencingToken));
        Ok(()).into()
    }
}

/// An endpoint of another type, to connect to by mistake.
struct Other;
impl RpcEndpoint for Other {
    const GATEWAY: &'static str = "Other";
    fn calls(table: CallTable<Self>) -> CallTable<Self> {
        table
    }
}

/// Carries calls as bytes to another service of the same process.
struct Loopback(RpcService);

impl Transport for Loopback {
    fn connect(&self, address: &RpcAddress, handshake: Handshake) -> BoxFuture<'static, Result<Arc<dyn Connection>>> {
        futures::future::ready(self.0.accept(&address.endpoint, &handshake)).boxed()
    }
}

struct Runner {
    runtime: tokio::runtime::Runtime,
    clock: Arc<VirtualClock>,
    here: RpcService,
    there: RpcService,
    servers: Vec<(String, RpcServer<Counter>)>,
    gateways: Vec<(String, Gateway<Counter>)>,
    log: Log,
}

impl Runner {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let clock = VirtualClock::new(0);
        let here = RpcService::new("here", Arc::new(TokioExecutor::new(runtime.handle().clone())), clock.clone(), None);
        let transport = Arc::new(Loopback(here.clone()));
        let there =
            RpcService::new("there", Arc::new(TokioExecutor::new(runtime.handle().clone())), clock.clone(), Some(transport));
        Runner { runtime, clock, here, there, servers: Vec::new(), gateways: Vec::new(), log: Log::default() }
    }

    fn server(&self, name: &str) -> std::result::Result<&RpcServer<Counter>, Box<dyn StdError>> {
        let found = self.servers.iter().rev().find(|(own, _)| own == name);
        found.map(|(_, server)| server).ok_or_else(|| format!("no server {name}").into())
    }

    fn connect(&mut self, name: &str, to: &str, remote: bool, token: Option<FencingToken>, other: bool) {
        let (service, address) = (if remote { &self.there } else { &self.here }, self.here.address_of(to));
        if other {
            let failure = self.runtime.block_on(service.connect::<Other>(name, &address)).unwrap_err();
            return log(&self.log, format!("{name} → {failure}"));
        }
        let connected = self.runtime.block_on(async {
            match token {
                Some(token) => service.connect_fenced(name, &address, token).await,
                None => service.connect(name, &address).await,
            }
        });
        match connected {
            Ok(gateway) => self.gateways.push((name.to_string(), gateway)),
            Err(failure) => log(&self.log, format!("{name} → {failure}")),
        }
    }

    fn ask<C: RpcCall>(&self, gateway: &Gateway<Counter>, call: C, label: String, timeout: Option<Duration>)
    where
        Counter: Handle<C>,
        C::Answer: std::fmt::Debug,
    {
        let (answer, events) = (gateway.ask(call, timeout), Arc::clone(&self.log));
        self.runtime.spawn(async move {
            let line = match answer.await {
                Ok(answer) => format!("{answer:?}"),
                Err(error) => format!("{:?}: {error}", error.kind()),
            };
            log(&events, format!("{label} → {line}"));
        });
    }

    /// Lets everything that can run do so. On one thread, a task that can run does so within a few rounds of the others.
    fn settle(&self) {
        self.runtime.block_on(async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        });
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> std::result::Result<String, Box<dyn StdError>> {
        let mut args = command.consume_args();
        let mut next = || args.next_pos().map(str::to_string).ok_or("argument missing");
        match command.name.as_str() {
            "endpoint" => {
                let name = next()?;
                let token = args.take_key("token").map(str::parse).transpose()?.map(FencingToken);
                let stop_ms = args.take_key("closes_in_ms").map_or(Ok(0), str::parse)?;
                let start_fails = args.take_key("start_fails").is_some();
                let counter = Counter { name: name.clone(), total: 0, start_fails, stop_ms, log: self.log.clone() };
                match self.here.add_server(&name, counter, token) {
                    Err(failure) => log(&self.log, failure.to_string()),
                    Ok(server) => {
                        let (events, end, ended) = (self.log.clone(), server.termination(), name.clone());
                        self.runtime.spawn(async move {
                            let outcome = end.wait().await;
                            log(
                                &events,
                                format!("{ended} has ended: {}", outcome.map_or_else(|e| e.to_string(), |()| "fine".into())),
                            );
                        });
                        self.servers.push((name, server));
                    }
                }
            }
            "start" => self.server(&next()?)?.start(),
            "stop" => self.server(&next()?)?.stop(),
            "terminate" => drop(self.server(&next()?)?.terminate()),
            "connect" => {
                let (name, to) = (next()?, next()?);
                let token = args.take_key("token").map(str::parse).transpose()?.map(FencingToken);
                let (remote, other) = (args.take_key("remote").is_some(), args.take_key("as").is_some());
                self.connect(&name, &to, remote, token, other);
            }
            "ask" | "tell" => {
                let (name, call) = (next()?, next()?);
                let argument = args.next_pos().unwrap_or("0").to_string();
                let timeout = args.take_key("timeout_ms").map(str::parse).transpose()?.map(Duration::from_millis);
                let found = self.gateways.iter().rev().find(|(own, _)| *own == name).ok_or("no such gateway")?;
                let gateway = found.1.clone();
                let label = format!("{name} {call} {argument}");
                match (command.name.as_str(), call.as_str()) {
                    ("ask", "add") => self.ask(&gateway, Add(argument.parse()?), label, timeout),
                    ("ask", "total-after") => self.ask(&gateway, TotalAfter(argument.parse()?), label, timeout),
                    ("ask", "forget") => self.ask(&gateway, Forget, label, timeout),
                    ("ask", "panic") => self.ask(&gateway, Panic(argument), label, timeout),
                    ("ask", "lead") => self.ask(&gateway, Lead(Some(argument.parse()?)), label, timeout),
                    ("tell", "add") => gateway.tell(Add(argument.parse()?)),
                    _ => return Err(format!("no call {call}").into()),
                }
            }
            "work" => {
                // Panics inside the main thread, and outside of it.
                let (main, events) = (self.server(&next()?)?.main_thread().clone(), self.log.clone());
                let outside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| main.assert_main_thread()));
                log(&self.log, format!("outside the main thread: {}", outside.map_or("asserted", |()| "let pass")));
                let total = main.call_async(|counter, main| {
                    main.assert_main_thread();
                    Ok(counter.total)
                });
                self.runtime.spawn(async move {
                    let total = total.await.map_or_else(|error| error.to_string(), |total| total.to_string());
                    log(&events, format!("in the main thread → {total}"));
                });
            }
            "advance" => {
                let ms: i64 = next()?.parse()?;
                self.clock.advance_to(crate::clock::Clock::now_ms(self.clock.as_ref()) + ms);
            }
            name => return Err(format!("no command {name}").into()),
        }
        args.reject_next()?;
        self.settle();
        let mut output = String::new();
        for line in self.log.lock().unwrap().drain(..) {
            writeln!(output, "{line}")?;
        }
        Ok(output)
    }
}

fn run(scenario: &str) {
    let path = format!("{}/src/rpc/testscripts/{scenario}", env!("CARGO_MANIFEST_DIR"));
    goldenscript::run(&mut Runner::new(), path).unwrap();
}

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*
    };
}

scenarios!(lifecycle fencing timeouts termination panics main_thread remote);
