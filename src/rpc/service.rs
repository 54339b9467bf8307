//! The service of a process: starts the endpoints of this process and connects to them and to others.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::endpoint_loop::{Control, EndpointLoop, Mail, Outcome};
use super::main_thread::ended;
use super::{CallTable, Connection, FencingToken, Gateway, Handshake, MainThread, Request, RpcAddress, RpcEndpoint, Transport};
use crate::clock::{Clock, Executor};
use crate::error::{Error, ErrorKind, Result};

/// The service of a process. Cheap to clone.
#[derive(Clone)]
pub struct RpcService {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    executor: Arc<dyn Executor>,
    clock: Arc<dyn Clock>,
    transport: Option<Arc<dyn Transport>>,
    servers: Mutex<BTreeMap<String, Arc<dyn AnyServer>>>,
}

/// A server whose endpoint's type is not known.
trait AnyServer: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn accept(&self, handshake: &Handshake) -> Result<Arc<dyn Connection>>;
    fn terminate(&self) -> Termination;
    fn gateway_type(&self) -> &'static str;
}

impl fmt::Debug for RpcService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RpcService(rpc://{})", self.inner.name)
    }
}

impl Inner {
    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn AnyServer>>> {
        self.servers.lock().expect("no holder of this lock panics")
    }
}

impl RpcService {
    /// A service under this name, whose endpoints run on `executor`. Without a transport it reaches only its own endpoints.
    pub fn new(name: &str, executor: Arc<dyn Executor>, clock: Arc<dyn Clock>, transport: Option<Arc<dyn Transport>>) -> Self {
        let servers = Mutex::new(BTreeMap::new());
        RpcService { inner: Arc::new(Inner { name: name.to_string(), executor, clock, transport, servers }) }
    }

    /// The address of an endpoint of this service.
    pub fn address_of(&self, endpoint: &str) -> RpcAddress {
        RpcAddress { service: self.inner.name.clone(), endpoint: endpoint.to_string() }
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Adds an endpoint. It refuses calls until [`RpcServer::start`]. With a token it is fenced.
    pub fn add_server<E: RpcEndpoint>(&self, name: &str, endpoint: E, token: Option<FencingToken>) -> Result<RpcServer<E>> {
        // A main thread that waits for room in its own mailbox would wait for ever; calls are few and each asker waits for its answer.
        #[allow(clippy::disallowed_methods)]
        let (sender, mailbox) = mpsc::unbounded_channel();
        let address = self.address_of(name);
        let main = MainThread::new(address.clone(), sender, Arc::clone(&self.inner.executor), Arc::clone(&self.inner.clock));
        let (outcome, termination) = watch::channel(None);
        let server = RpcServer { main: main.clone(), token, termination };
        {
            let mut servers = self.inner.servers();
            if servers.contains_key(name) {
                return Err(Error::new(ErrorKind::DuplicateObject, format!("endpoint {address} exists already")));
            }
            servers.insert(name.to_string(), Arc::new(server.clone()));
        }
        let (service, name) = (self.clone(), name.to_string());
        let deregister = move || drop(service.inner.servers().remove(&name));
        self.inner.executor.spawn(Box::pin(EndpointLoop::new(endpoint, main, mailbox, token).run(outcome, deregister)));
        Ok(server)
    }

    /// Connects to an endpoint that is not fenced. `caller` is named in errors.
    pub async fn connect<E: RpcEndpoint>(&self, caller: &str, address: &RpcAddress) -> Result<Gateway<E>> {
        self.connect_with(caller, address, None).await
    }

    /// Connects to a fenced endpoint on behalf of the leader with this token.
    pub async fn connect_fenced<E: RpcEndpoint>(
        &self,
        caller: &str,
        address: &RpcAddress,
        token: FencingToken,
    ) -> Result<Gateway<E>> {
        self.connect_with(caller, address, Some(token)).await
    }

    async fn connect_with<E: RpcEndpoint>(
        &self,
        caller: &str,
        address: &RpcAddress,
        token: Option<FencingToken>,
    ) -> Result<Gateway<E>> {
        let inner = &self.inner;
        if address.service == inner.name {
            let server = self.server(address)?;
            let Some(server) = server.as_any().downcast_ref::<RpcServer<E>>() else {
                let (is, wants) = (server.gateway_type(), E::GATEWAY);
                return Err(Error::new(ErrorKind::InvalidArgument, format!("{address} is a {is}, the caller wants a {wants}")));
            };
            return Ok(Gateway::local(caller, token, server.main.clone()));
        }
        let transport = inner.transport.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::NotRunning, format!("{address} is in another process and this service has no transport"))
        })?;
        let connection = transport.connect(address, Handshake::of::<E>()).await?;
        Ok(Gateway::remote(address.clone(), caller, token, connection, Arc::clone(&inner.clock)))
    }

    /// The server side of a transport: the connection to the named endpoint, after checking the handshake of the caller.
    pub fn accept(&self, endpoint: &str, handshake: &Handshake) -> Result<Arc<dyn Connection>> {
        self.server(&self.address_of(endpoint))?.accept(handshake)
    }

    /// Terminates all endpoints. The future completes when they have ended, with the first failure.
    pub fn terminate(&self) -> BoxFuture<'static, Result<()>> {
        let ends: Vec<Termination> = self.inner.servers().values().map(|server| server.terminate()).collect();
        Box::pin(async move {
            let ends = futures::future::join_all(ends.into_iter().map(Termination::wait)).await;
            ends.into_iter().collect()
        })
    }

    fn server(&self, address: &RpcAddress) -> Result<Arc<dyn AnyServer>> {
        let server = self.inner.servers().get(&address.endpoint).cloned();
        server.ok_or_else(|| Error::new(ErrorKind::NotRunning, format!("there is no endpoint {address}")))
    }
}

/// The handle of an endpoint that runs here.
pub struct RpcServer<E> {
    main: MainThread<E>,
    token: Option<FencingToken>,
    termination: watch::Receiver<Outcome>,
}

impl<E> Clone for RpcServer<E> {
    fn clone(&self) -> Self {
        RpcServer { main: self.main.clone(), token: self.token, termination: self.termination.clone() }
    }
}

impl<E> fmt::Debug for RpcServer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RpcServer({:?})", self.main)
    }
}

impl<E: RpcEndpoint> RpcServer<E> {
    /// START: takes calls from now on.
    pub fn start(&self) {
        self.main.post(Mail::Control(Control::Start));
    }

    /// STOP: refuses calls until it is started again.
    pub fn stop(&self) {
        self.main.post(Mail::Control(Control::Stop));
    }

    /// TERMINATE: finishes what it began and ends.
    pub fn terminate(&self) -> Termination {
        self.main.post(Mail::Control(Control::Terminate));
        self.termination()
    }

    /// Completes when the endpoint has ended, for whatever reason.
    pub fn termination(&self) -> Termination {
        Termination { address: self.main.address().clone(), outcome: self.termination.clone() }
    }

    /// Its own gateway, with the token that it was added with.
    pub fn gateway(&self, caller: &str) -> Gateway<E> {
        Gateway::local(caller, self.token, self.main.clone())
    }

    /// Its main thread.
    pub fn main_thread(&self) -> &MainThread<E> {
        &self.main
    }
}

impl<E: RpcEndpoint> AnyServer for RpcServer<E> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn accept(&self, handshake: &Handshake) -> Result<Arc<dyn Connection>> {
        handshake.check::<E>(self.main.address())?;
        Ok(Arc::new(ServerConnection { table: CallTable::of_endpoint(), main: self.main.clone() }))
    }

    fn terminate(&self) -> Termination {
        RpcServer::terminate(self)
    }

    fn gateway_type(&self) -> &'static str {
        E::GATEWAY
    }
}

/// The end of a connection that leads into a mailbox.
struct ServerConnection<E> {
    table: CallTable<E>,
    main: MainThread<E>,
}

impl<E: RpcEndpoint> Connection for ServerConnection<E> {
    fn send(&self, request: Request) {
        self.table.deliver(request, &self.main);
    }
}

/// The end of an endpoint.
#[derive(Debug, Clone)]
pub struct Termination {
    address: RpcAddress,
    outcome: watch::Receiver<Outcome>,
}

impl Termination {
    /// Waits for it: fine, or the cause if the endpoint failed.
    pub async fn wait(mut self) -> Result<()> {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().expect("waited for"),
            Err(_) => Err(ended(&self.address).with_detail("its runtime was shut down")),
        }
    }
}
