//! RPC endpoints: objects whose state is touched by one thing after another, and the gateways through which others call them.
//!
//! An [`RpcEndpoint`] runs in a task of its own, its *main thread*: calls from gateways, work handed over by [`MainThread`] and
//! the lifecycle all go through one mailbox, so an endpoint needs no lock. A [`Gateway`] is the typed view of an endpoint from
//! outside. The [`RpcService`] starts endpoints and connects to them, here or, through a [`Transport`], in another process.
//!
//! ```text
//!                       ┌ mailbox ────────────────────────┐
//!   Gateway::tell/ask ──┤ call (caller, fencing token)    │      one task
//!   MainThread::run_… ──┤ work                            ├──▶  EndpointLoop ──▶ &mut Endpoint
//!   RpcServer::start… ──┤ START | STOP | TERMINATE        │
//!                       └─────────────────────────────────┘
//!
//!   Created ──START──▶ Started ──STOP──▶ Stopped ──START──▶ Started
//!      └────────────────── TERMINATE (or a panic) ──▶ Terminating ──▶ Terminated
//! ```
//!
//! Laws: calls of one gateway are handled in the order in which they were sent. Calls are refused unless the endpoint is started (while
//! it terminates it still answers, to finish what it began). A panic ends that endpoint alone, with the panic as cause.
//! Knows no job.

mod endpoint;
mod endpoint_loop;
mod fencing;
mod gateway;
mod main_thread;
mod service;
mod transport;

#[cfg(test)]
mod tests;

pub use endpoint::{Answer, Handle, Reply, RpcCall, RpcEndpoint};
pub use fencing::FencingToken;
pub use gateway::Gateway;
pub use main_thread::MainThread;
pub use service::{RpcServer, RpcService, Termination};
pub use transport::{CallTable, Connection, Handshake, PROTOCOL_VERSION, Request, RpcAddress, Transport};
