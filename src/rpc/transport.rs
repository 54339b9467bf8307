//! The seam below gateways: how a call reaches an endpoint of another process.
//!
//! In one process a call is handed over as a value and none of this is used. A transport carries the same call as bytes: its client side gives
//! a [`Connection`] for an address, its server side passes what arrives to the [`Connection`] that [`RpcService::accept`] gives.
//! Arguments and answers are JSON, since both ends decode by name and the control plane is not what must be fast.
//!
//! [`RpcService::accept`]: super::RpcService::accept

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::endpoint_loop::Mail;
use super::{Answer, FencingToken, Handle, MainThread, RpcCall, RpcEndpoint};
use crate::error::{Error, ErrorKind, Result};

/// The version of this protocol. Both ends must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

/// Where an endpoint is: `rpc://service/endpoint`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RpcAddress {
    /// The service: a process, in a form that its transport understands (`host:port`).
    pub service: String,
    /// The endpoint's name, unique within the service.
    pub endpoint: String,
}

impl fmt::Display for RpcAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rpc://{}/{}", self.service, self.endpoint)
    }
}

impl FromStr for RpcAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.strip_prefix("rpc://").and_then(|rest| rest.split_once('/'));
        match parts {
            Some((service, endpoint)) if !service.is_empty() && !endpoint.is_empty() => {
                Ok(RpcAddress { service: service.to_string(), endpoint: endpoint.to_string() })
            }
            _ => Err(Error::new(ErrorKind::InvalidArgument, format!("'{text}' is no address of an endpoint"))
                .with_hint("give it as rpc://service/endpoint")),
        }
    }
}

/// What the two ends tell each other before the first call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshake {
    /// [`PROTOCOL_VERSION`] of the caller.
    pub version: u32,
    /// [`RpcEndpoint::GATEWAY`] that the caller wants to speak to.
    pub gateway: String,
}

impl Handshake {
    /// What a caller of `E` says.
    pub fn of<E: RpcEndpoint>() -> Self {
        Handshake { version: PROTOCOL_VERSION, gateway: E::GATEWAY.to_string() }
    }

    /// Whether a caller that said this may speak to an endpoint of type `E`.
    pub(super) fn check<E: RpcEndpoint>(&self, address: &RpcAddress) -> Result<()> {
        if self.version != PROTOCOL_VERSION {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{address} speaks version {PROTOCOL_VERSION} of the protocol, the caller version {}", self.version),
            )
            .with_hint("run the same version of flott on both sides"));
        }
        if self.gateway != E::GATEWAY {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{address} is a {}, the caller wants a {}", E::GATEWAY, self.gateway),
            ));
        }
        Ok(())
    }
}

/// A call on its way between processes.
#[derive(Debug)]
pub struct Request {
    /// [`RpcCall::NAME`].
    pub call: String,
    /// Who the caller believes leads.
    pub token: Option<FencingToken>,
    /// The arguments as JSON.
    pub arguments: Vec<u8>,
    /// Where the answer goes, as JSON; none = nobody waits for it.
    pub reply: Option<oneshot::Sender<Result<Vec<u8>>>>,
}

/// One end of a connection to an endpoint, after the handshake.
pub trait Connection: Send + Sync {
    /// Passes a call on, in the order of these calls. A failure goes to the request's reply.
    fn send(&self, request: Request);
}

/// Connects to endpoints of other processes.
pub trait Transport: Send + Sync {
    /// Connects and shakes hands.
    fn connect(&self, address: &RpcAddress, handshake: Handshake) -> BoxFuture<'static, Result<std::sync::Arc<dyn Connection>>>;
}

type Decode<E> = fn(Request, MainThread<E>);

/// The calls that an endpoint handles, by name.
pub struct CallTable<E>(BTreeMap<&'static str, Decode<E>>);

impl<E> fmt::Debug for CallTable<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<E: RpcEndpoint> CallTable<E> {
    pub(super) fn of_endpoint() -> Self {
        E::calls(CallTable(BTreeMap::new()))
    }

    /// Adds a call.
    pub fn with<C: RpcCall>(mut self) -> Self
    where
        E: Handle<C>,
    {
        let former = self.0.insert(C::NAME, decode_and_post::<E, C>);
        assert!(former.is_none(), "two calls of {} are named {}", E::GATEWAY, C::NAME);
        self
    }

    /// Decodes a call and puts it into the endpoint's mailbox.
    pub(super) fn deliver(&self, request: Request, main: &MainThread<E>) {
        match self.0.get(request.call.as_str()) {
            Some(decode) => decode(request, main.clone()),
            None => {
                let error = Error::new(ErrorKind::InvalidArgument, format!("{} has no call {}", E::GATEWAY, request.call));
                request.reply.into_iter().for_each(|reply| drop(reply.send(Err(error.clone()))));
            }
        }
    }
}

fn decode_and_post<E: Handle<C>, C: RpcCall>(request: Request, main: MainThread<E>) {
    let Request { token, arguments, reply, .. } = request;
    let beside = main.clone();
    let answered = move |answer: Answer<C::Answer>| {
        if let Some(reply) = reply {
            beside.spawn(async move {
                // A broken promise drops the reply: the caller knows best what it asked.
                if let Some(result) = answer.resolve().await {
                    let _ = reply.send(result.and_then(|answer| encode(&answer)));
                }
            });
        }
    };
    match decode::<C>(&arguments) {
        Err(error) => answered(Err(error).into()),
        Ok(call) => main.post(Mail::Call {
            token,
            work: Box::new(move |endpoint| {
                answered(match endpoint {
                    Ok((endpoint, main)) => endpoint.handle(call, main),
                    Err(refusal) => Err(refusal).into(),
                });
            }),
        }),
    }
}

/// Arguments or an answer as JSON.
pub(super) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::internal("a call cannot be serialised").with_detail(error.to_string()))
}

/// Arguments or an answer from JSON.
pub(super) fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::new(ErrorKind::DataFormat, "a call cannot be read").with_detail(error.to_string()))
}
