//! The handle of an endpoint's main thread: the way for work that was begun elsewhere to come back and touch the state.
//!
//! A "main thread" is no thread but the one task that drives the endpoint; whatever runs in it runs alone.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::endpoint_loop::{Mail, panic_message};
use super::{FencingToken, Gateway, RpcAddress, RpcEndpoint};
use crate::clock::{Clock, Executor, run_blocking_on, sleep_for};
use crate::error::{Error, ErrorKind, Result};

thread_local! {
    /// The endpoint whose main thread is running right now on this thread; 0 = none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Numbers endpoints from 1, to tell main threads apart.
static NEXT_ENDPOINT: AtomicU64 = AtomicU64::new(1);

/// Hands work to the main thread of an endpoint. Cheap to clone; outliving the endpoint does no harm.
pub struct MainThread<E> {
    number: u64,
    address: Arc<RpcAddress>,
    // Unbounded, as the control plane must not lose or wait: its calls are few, each a reaction to one event of a job.
    mailbox: mpsc::UnboundedSender<Mail<E>>,
    executor: Arc<dyn Executor>,
    clock: Arc<dyn Clock>,
}

impl<E> Clone for MainThread<E> {
    fn clone(&self) -> Self {
        MainThread {
            number: self.number,
            address: Arc::clone(&self.address),
            mailbox: self.mailbox.clone(),
            executor: Arc::clone(&self.executor),
            clock: Arc::clone(&self.clock),
        }
    }
}

impl<E> fmt::Debug for MainThread<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MainThread({})", self.address)
    }
}

impl<E: RpcEndpoint> MainThread<E> {
    pub(super) fn new(
        address: RpcAddress,
        mailbox: mpsc::UnboundedSender<Mail<E>>,
        executor: Arc<dyn Executor>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let number = NEXT_ENDPOINT.fetch_add(1, Ordering::Relaxed);
        MainThread { number, address: Arc::new(address), mailbox, executor, clock }
    }

    /// The endpoint's address.
    pub fn address(&self) -> &RpcAddress {
        &self.address
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The endpoint's own gateway, for it to give to others. `token` is the one that its calls shall carry.
    pub fn gateway(&self, caller: &str, token: Option<FencingToken>) -> Gateway<E> {
        Gateway::local(caller, token, self.clone())
    }

    /// Runs `work` in the main thread, after what was handed over before. Nothing happens when the endpoint is not running.
    pub fn run_async(&self, work: impl FnOnce(&mut E, &MainThread<E>) + Send + 'static) {
        self.post(Mail::Work(Box::new(move |endpoint| {
            if let Ok((endpoint, main)) = endpoint {
                work(endpoint, main);
            }
        })));
    }

    /// Runs `work` in the main thread and gives its result. Fails when the endpoint is not running.
    pub fn call_async<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut E, &MainThread<E>) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let (sender, receiver) = oneshot::channel();
        self.post(Mail::Work(Box::new(move |endpoint| {
            let _ = sender.send(endpoint.and_then(|(endpoint, main)| work(endpoint, main)));
        })));
        let address = Arc::clone(&self.address);
        Box::pin(async move { receiver.await.unwrap_or_else(|_| Err(ended(&address))) })
    }

    /// Runs `work` in the main thread once `delay` has passed by the clock.
    pub fn schedule(&self, delay: Duration, work: impl FnOnce(&mut E, &MainThread<E>) + Send + 'static) {
        let (main, passed) = (self.clone(), sleep_for(Arc::clone(&self.clock), delay));
        self.spawn(async move {
            passed.await;
            main.run_async(work);
        });
    }

    /// Runs a future beside the main thread; for what waits on others. It must not block.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(Box::pin(future));
    }

    /// Waits for `future` beside the main thread, then runs `then` with its output in the main thread.
    pub fn when<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut E, &MainThread<E>, T) + Send + 'static,
    ) {
        let main = self.clone();
        self.spawn(async move {
            let output = future.await;
            main.run_async(move |endpoint, main| then(endpoint, main, output));
        });
    }

    /// Runs `work` that may block (it lists directories, say) on a thread beside the main thread, then `then` with its result in
    /// the main thread.
    pub fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
        then: impl FnOnce(&mut E, &MainThread<E>, Result<T>) + Send + 'static,
    ) {
        self.when(run_blocking_on(&*self.executor, work), |endpoint, main, ended| {
            let result = match ended {
                Ok(Some(Ok(result))) => result,
                Ok(Some(Err(panic))) => Err(Error::internal("blocking work panicked").with_detail(panic_message(&*panic))),
                Ok(None) => Err(Error::internal("blocking work was given up")),
                Err(cause) => Err(cause.into()),
            };
            then(endpoint, main, result);
        });
    }

    /// Changes the fencing token for the calls that come after what is in the mailbox now: leadership was won or lost.
    pub fn set_fencing_token(&self, token: Option<FencingToken>) {
        self.post(Mail::Fence(token));
    }

    /// Panics unless the caller runs in this main thread.
    pub fn assert_main_thread(&self) {
        assert!(CURRENT.get() == self.number, "this must run in the main thread of {}", self.address);
    }

    pub(super) fn post(&self, mail: Mail<E>) {
        // Refused mail is answered by dropping its reply.
        let _ = self.mailbox.send(mail);
    }

    /// Marks the current thread as this main thread while `work` runs.
    pub(super) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Restores the mark even when the work panics.
        struct Restore(u64);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(self.number));
        work()
    }
}

/// The error for what an ended endpoint can no longer do.
pub(super) fn ended(address: &RpcAddress) -> Error {
    Error::new(ErrorKind::NotRunning, format!("endpoint {address} has ended"))
}
