//! The client's typed view of an endpoint.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::endpoint_loop::Mail;
use super::transport::{decode, encode};
use super::{Answer, Connection, FencingToken, Handle, MainThread, Request, RpcAddress, RpcCall, RpcEndpoint};
use crate::clock::{Clock, sleep_for};
use crate::error::{Error, ErrorKind, Result};

/// The view of an endpoint of type `E` from outside. Cheap to clone, usable from any thread and any executor.
pub struct Gateway<E> {
    address: Arc<RpcAddress>,
    caller: Arc<str>,
    token: Option<FencingToken>,
    link: Link<E>,
    clock: Arc<dyn Clock>,
    endpoint: PhantomData<fn(E)>,
}

/// How calls get there.
enum Link<E> {
    /// As values, into the mailbox.
    Local(MainThread<E>),
    /// As bytes.
    Remote(Arc<dyn Connection>),
}

impl<E> Clone for Link<E> {
    fn clone(&self) -> Self {
        match self {
            Link::Local(main) => Link::Local(main.clone()),
            Link::Remote(connection) => Link::Remote(Arc::clone(connection)),
        }
    }
}

impl<E> Clone for Gateway<E> {
    fn clone(&self) -> Self {
        Gateway {
            address: Arc::clone(&self.address),
            caller: Arc::clone(&self.caller),
            token: self.token,
            link: self.link.clone(),
            clock: Arc::clone(&self.clock),
            endpoint: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Gateway<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gateway({} → {})", self.caller, self.address)
    }
}

impl<E: RpcEndpoint> Gateway<E> {
    pub(super) fn local(caller: &str, token: Option<FencingToken>, main: MainThread<E>) -> Self {
        let clock = Arc::clone(main.clock());
        Gateway::new(main.address().clone(), caller, token, Link::Local(main), clock)
    }

    pub(super) fn remote(
        address: RpcAddress,
        caller: &str,
        token: Option<FencingToken>,
        connection: Arc<dyn Connection>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Gateway::new(address, caller, token, Link::Remote(connection), clock)
    }

    fn new(address: RpcAddress, caller: &str, token: Option<FencingToken>, link: Link<E>, clock: Arc<dyn Clock>) -> Self {
        Gateway { address: Arc::new(address), caller: caller.into(), token, link, clock, endpoint: PhantomData }
    }

    /// The endpoint's address.
    pub fn address(&self) -> &RpcAddress {
        &self.address
    }

    /// Calls without waiting for an answer. That it was refused is not noticed.
    pub fn tell<C: RpcCall>(&self, call: C)
    where
        E: Handle<C>,
    {
        match &self.link {
            Link::Local(main) => main.post(Mail::Call {
                token: self.token,
                work: Box::new(move |endpoint| {
                    if let Ok((endpoint, main)) = endpoint {
                        drop(endpoint.handle(call, main));
                    }
                }),
            }),
            Link::Remote(connection) => {
                if let Ok(arguments) = encode(&call) {
                    connection.send(Request { call: C::NAME.to_string(), token: self.token, arguments, reply: None });
                }
            }
        }
    }

    /// Calls and gives the answer. The call is on its way when this returns; the future only waits, for `timeout` at most by the
    /// clock (none = for as long as it takes). A failed ask says who called what and after how long it failed.
    pub fn ask<C: RpcCall>(&self, call: C, timeout: Option<Duration>) -> BoxFuture<'static, Result<C::Answer>>
    where
        E: Handle<C>,
    {
        let asked = Asked {
            call: C::NAME,
            caller: Arc::clone(&self.caller),
            address: Arc::clone(&self.address),
            since_nanos: self.clock.monotonic_nanos(),
            clock: Arc::clone(&self.clock),
        };
        let answer = match &self.link {
            Link::Local(main) => ask_local(main, self.token, call),
            Link::Remote(connection) => ask_remote(connection.as_ref(), self.token, call),
        };
        let Some(timeout) = timeout else {
            return async move { answer.await.unwrap_or_else(|| Err(asked.unanswered())) }.boxed();
        };
        let time_is_up = sleep_for(Arc::clone(&self.clock), timeout);
        async move {
            tokio::select! {
                biased;
                answer = answer => answer.unwrap_or_else(|| Err(asked.unanswered())),
                () = time_is_up => Err(asked.timed_out()),
            }
        }
        .boxed()
    }
}

/// The answer; none = the endpoint ended without one.
type Awaited<T> = BoxFuture<'static, Option<Result<T>>>;

fn ask_local<E: Handle<C>, C: RpcCall>(main: &MainThread<E>, token: Option<FencingToken>, call: C) -> Awaited<C::Answer> {
    let (sender, receiver) = oneshot::channel::<Answer<C::Answer>>();
    main.post(Mail::Call {
        token,
        work: Box::new(move |endpoint| {
            let answer = match endpoint {
                Ok((endpoint, main)) => endpoint.handle(call, main),
                Err(refusal) => Err(refusal).into(),
            };
            let _ = sender.send(answer);
        }),
    });
    async move { receiver.await.ok()?.resolve().await }.boxed()
}

fn ask_remote<C: RpcCall>(connection: &dyn Connection, token: Option<FencingToken>, call: C) -> Awaited<C::Answer> {
    let (sender, receiver) = oneshot::channel();
    match encode(&call) {
        Ok(arguments) => connection.send(Request { call: C::NAME.to_string(), token, arguments, reply: Some(sender) }),
        Err(error) => return futures::future::ready(Some(Err(error))).boxed(),
    }
    async move { receiver.await.ok().map(|answer| answer.and_then(|bytes| decode(&bytes))) }.boxed()
}

/// Who asked what and when, for the error.
struct Asked {
    call: &'static str,
    caller: Arc<str>,
    address: Arc<RpcAddress>,
    since_nanos: u64,
    clock: Arc<dyn Clock>,
}

impl Asked {
    fn after(&self) -> String {
        let nanos = self.clock.monotonic_nanos().saturating_sub(self.since_nanos);
        format!("{} called {} at {} and has no answer after {} ms", self.caller, self.call, self.address, nanos / 1_000_000)
    }

    fn timed_out(&self) -> Error {
        Error::new(ErrorKind::Timeout, self.after())
    }

    fn unanswered(&self) -> Error {
        Error::new(ErrorKind::NotRunning, self.after()).with_detail("the endpoint has ended or gave up the call")
    }
}
