//! The loop that is an endpoint's main thread: takes one mail after another, guards lifecycle and fencing, catches panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::{FencingToken, MainThread, RpcEndpoint, fencing};
use crate::error::{Error, ErrorKind, Result};

/// Work for the main thread: runs with the endpoint, or learns why it cannot.
pub(super) type Work<E> = Box<dyn FnOnce(Result<(&mut E, &MainThread<E>)>) + Send>;

/// What arrives in the mailbox of an endpoint.
pub(super) enum Mail<E> {
    /// A call from a gateway, with the token that the caller believes in.
    Call { token: Option<FencingToken>, work: Work<E> },
    /// Work from the endpoint itself.
    Work(Work<E>),
    /// Another fencing token from now on.
    Fence(Option<FencingToken>),
    /// START, STOP or TERMINATE.
    Control(Control),
}

/// The lifecycle commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// Takes calls from now on.
    Start,
    /// Refuses calls from now on.
    Stop,
    /// Finishes what it began, and ends.
    Terminate,
}

/// Where an endpoint is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Created,
    Started,
    Stopped,
    Terminating,
}

/// How a termination is told: none while the endpoint lives.
pub(super) type Outcome = Option<Result<()>>;

/// The main thread of an endpoint.
pub(super) struct EndpointLoop<E> {
    endpoint: E,
    main: MainThread<E>,
    mailbox: mpsc::UnboundedReceiver<Mail<E>>,
    phase: Phase,
    token: Option<FencingToken>,
    closing: Option<BoxFuture<'static, Result<()>>>,
    failure: Option<Error>,
}

impl<E: RpcEndpoint> EndpointLoop<E> {
    pub(super) fn new(
        endpoint: E,
        main: MainThread<E>,
        mailbox: mpsc::UnboundedReceiver<Mail<E>>,
        token: Option<FencingToken>,
    ) -> Self {
        EndpointLoop { endpoint, main, mailbox, phase: Phase::Created, token, closing: None, failure: None }
    }

    /// Drives the endpoint to its end; then tells the outcome, after the endpoint's state is gone.
    pub(super) async fn run(mut self, outcome: watch::Sender<Outcome>, deregister: impl FnOnce() + Send) {
        let result = self.serve().await;
        self.mailbox.close();
        while let Ok(mail) = self.mailbox.try_recv() {
            self.refuse(mail);
        }
        deregister();
        drop(self);
        outcome.send_replace(Some(result));
    }

    async fn serve(&mut self) -> Result<()> {
        loop {
            let mail = match &mut self.closing {
                Some(closing) => tokio::select! {
                    biased;
                    closed = closing => return closed.and(self.finish_queue()),
                    mail = self.mailbox.recv() => mail,
                },
                None => self.mailbox.recv().await,
            };
            // The loop itself holds a sender, so the mailbox never runs dry for good.
            let mail = mail.expect("the main thread's own handle keeps the mailbox open");
            let never_ran = matches!(self.phase, Phase::Created | Phase::Stopped);
            if never_ran && matches!(mail, Mail::Control(Control::Terminate)) {
                return Ok(());
            }
            self.deliver(mail);
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
        }
    }

    /// What closing waited for may have left news in the mailbox: handles what is there, and no more.
    fn finish_queue(&mut self) -> Result<()> {
        for _ in 0..self.mailbox.len() {
            let Ok(mail) = self.mailbox.try_recv() else { break };
            self.deliver(mail);
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    fn deliver(&mut self, mail: Mail<E>) {
        match mail {
            Mail::Call { token, work } => match self.check_running().and_then(|()| fencing::check(self.token, token)) {
                Ok(()) => self.work(work),
                Err(refusal) => work(Err(refusal)),
            },
            Mail::Work(work) => match self.check_running() {
                Ok(()) => self.work(work),
                Err(refusal) => work(Err(refusal)),
            },
            Mail::Fence(token) => self.token = token,
            Mail::Control(control) => self.control(control),
        }
    }

    fn control(&mut self, control: Control) {
        match (control, self.phase) {
            (Control::Start, Phase::Created | Phase::Stopped) => {
                self.phase = Phase::Started;
                if let Some(Err(failure)) = self.guarded(E::on_start) {
                    self.failure = Some(failure);
                }
            }
            (Control::Stop, Phase::Created | Phase::Started) => self.phase = Phase::Stopped,
            (Control::Terminate, Phase::Started) => {
                self.phase = Phase::Terminating;
                self.closing = self.guarded(E::on_stop);
            }
            // Asked for what is so already, or for a change after the end was decided.
            _ => {}
        }
    }

    fn work(&mut self, work: Work<E>) {
        self.guarded(|endpoint, main| work(Ok((endpoint, main))));
    }

    /// Runs `work` on the endpoint; a panic becomes the failure that ends the endpoint.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut E, &MainThread<E>) -> T) -> Option<T> {
        let (endpoint, main) = (&mut self.endpoint, &self.main);
        // Unwind safe: after a panic the endpoint's state is only dropped.
        match catch_unwind(AssertUnwindSafe(|| main.enter(|| work(endpoint, main)))) {
            Ok(output) => Some(output),
            Err(payload) => {
                let message = format!("endpoint {} panicked", self.main.address());
                self.failure = Some(Error::internal(message).with_detail(panic_message(payload.as_ref())));
                None
            }
        }
    }

    fn check_running(&self) -> Result<()> {
        let state = match self.phase {
            Phase::Started | Phase::Terminating => return Ok(()),
            Phase::Created => "is not started yet",
            Phase::Stopped => "is stopped",
        };
        Err(Error::new(ErrorKind::NotRunning, format!("endpoint {} {state}", self.main.address())))
    }

    fn refuse(&self, mail: Mail<E>) {
        if let Mail::Call { work, .. } | Mail::Work(work) = mail {
            work(Err(super::main_thread::ended(self.main.address())));
        }
    }
}

/// What a panic said.
pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_string())
}
