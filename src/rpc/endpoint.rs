//! What an endpoint is: state, the calls that it handles, and what it does when it starts and stops.

use std::fmt;

use futures::future::{BoxFuture, FutureExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::{CallTable, MainThread};
use crate::error::Result;

/// An object that is called through gateways, one call after another.
pub trait RpcEndpoint: Sized + Send + 'static {
    /// Its gateway's type, for the handshake and for errors: `Dispatcher`.
    const GATEWAY: &'static str;

    /// The calls that it handles, for those that arrive serialised: one [`CallTable::with`] for each [`Handle`].
    fn calls(table: CallTable<Self>) -> CallTable<Self>;

    /// Called at START. An error terminates the endpoint with this cause.
    fn on_start(&mut self, _main: &MainThread<Self>) -> Result<()> {
        Ok(())
    }

    /// Called at TERMINATE. Until the future completes, the endpoint goes on handling calls, so that what it began can finish.
    fn on_stop(&mut self, _main: &MainThread<Self>) -> BoxFuture<'static, Result<()>> {
        futures::future::ready(Ok(())).boxed()
    }
}

/// A call: its arguments, and the type of its answer.
pub trait RpcCall: Serialize + DeserializeOwned + Send + 'static {
    /// Its name: unique within an endpoint, shown in errors.
    const NAME: &'static str;
    /// What it is answered with.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
}

/// Says which type a call is answered with: `rpc_call!(CancelJob => ())`. The call's name is its type's.
#[macro_export]
macro_rules! rpc_call {
    ($($call:ident => $answer:ty),+ $(,)?) => {
        $(
            impl $crate::rpc::RpcCall for $call {
                const NAME: &'static str = stringify!($call);
                type Answer = $answer;
            }
        )+
    };
}

/// How an endpoint handles a call: in its main thread, never blocking.
pub trait Handle<C: RpcCall>: RpcEndpoint {
    /// Handles the call.
    fn handle(&mut self, call: C, main: &MainThread<Self>) -> Answer<C::Answer>;
}

/// The answer to a call: known now, or promised.
pub struct Answer<T>(Promise<T>);

enum Promise<T> {
    Now(Result<T>),
    /// None = the promise was not kept.
    Later(BoxFuture<'static, Option<Result<T>>>),
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self.0, Promise::Now(_)) { "Answer(now)" } else { "Answer(later)" })
    }
}

/// Keeps the promise of [`Answer::later`]. Dropped without [`Reply::send`], it fails the call.
#[derive(Debug)]
pub struct Reply<T>(oneshot::Sender<Result<T>>);

impl<T: Send + 'static> Answer<T> {
    /// An answer that will be given through the reply.
    pub fn later() -> (Reply<T>, Self) {
        let (sender, receiver) = oneshot::channel();
        (Reply(sender), Answer(Promise::Later(receiver.map(std::result::Result::ok).boxed())))
    }

    /// The answer is what `future` gives, say that of another endpoint which was asked. Whoever asked polls it.
    pub fn of_future(future: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Answer(Promise::Later(future.map(Some).boxed()))
    }

    /// Waits for the answer; none = the promise was not kept.
    pub(super) async fn resolve(self) -> Option<Result<T>> {
        match self.0 {
            Promise::Now(result) => Some(result),
            Promise::Later(future) => future.await,
        }
    }
}

impl<T> From<Result<T>> for Answer<T> {
    fn from(result: Result<T>) -> Self {
        Answer(Promise::Now(result))
    }
}

impl<T> Reply<T> {
    /// Whether anybody still waits for it.
    pub fn is_wanted(&self) -> bool {
        !self.0.is_closed()
    }

    /// Answers. Whoever asked may have lost interest.
    pub fn send(self, result: Result<T>) {
        let _ = self.0.send(result);
    }
}
