//! The connectors of this build: one list for the planner, one for the runtime.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::blackhole::{self, BlackholeWriter};
use super::datagen::{self, DatagenDescriptor};
use super::descriptor::{no_sink, no_source};
use super::embedded::{self, EmbeddedDescriptor, EmbeddedSource, EmbeddedTables};
use super::filesystem::{self, CommitBoards, FileCommitter, FileSink, FilesystemDescriptor, FilesystemSource};
use super::memory::{self, MemoryCommitter, MemoryDescriptor, MemorySource, MemoryTables, MemoryWriter};
use super::nexmark::{self, NexmarkDescriptor};
use super::print::{self, PrintWriter, SharedWriter};
use crate::catalog::{ConnectorDescriptor, ConnectorRegistry, ObjectPath};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::runtime::{Committer, ConnectorFactory, SinkContext, SinkWriter, Source};
use crate::stream_graph::{SinkSpec, SourceSpec};
use crate::types::{JobId, OperatorId};

/// What connectors need of their process.
#[derive(Clone)]
pub struct ConnectorServices {
    /// Where `print` prints.
    pub stdout: SharedWriter,
    /// Where `print` prints with `standard-error`.
    pub stderr: SharedWriter,
    /// The tables of `memory`.
    pub memory: Arc<MemoryTables>,
    /// The tables that the program has registered.
    pub embedded: Arc<EmbeddedTables>,
}

impl Default for ConnectorServices {
    /// The streams of the process.
    fn default() -> Self {
        ConnectorServices {
            stdout: Arc::new(Mutex::new(std::io::stdout())),
            stderr: Arc::new(Mutex::new(std::io::stderr())),
            memory: Arc::default(),
            embedded: Arc::default(),
        }
    }
}

/// The connectors of this build.
#[derive(Clone, Default)]
pub struct BuiltinConnectors {
    services: ConnectorServices,
    /// What the writers of file sinks tell each other.
    boards: Arc<CommitBoards>,
}

impl fmt::Debug for BuiltinConnectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuiltinConnectors")
    }
}

impl BuiltinConnectors {
    /// With these services.
    pub fn new(services: ConnectorServices) -> Self {
        BuiltinConnectors { services, boards: Arc::default() }
    }

    /// The tables of `memory`, for the session and for programs that embed the engine.
    pub fn memory(&self) -> &Arc<MemoryTables> {
        &self.services.memory
    }
}

impl BuiltinConnectors {
    /// The tables that the program has registered.
    pub fn embedded(&self) -> &Arc<EmbeddedTables> {
        &self.services.embedded
    }

    /// A table is gone: so are the rows that this process keeps for it.
    pub fn forget_table(&self, table: &ObjectPath) {
        self.services.memory.drop_table(table);
        self.services.embedded.drop_table(table);
    }

    /// A table has another name: so have the rows that this process keeps for it.
    pub fn rename_table(&self, table: &ObjectPath, new_name: &ObjectPath) {
        self.services.memory.rename_table(table, new_name);
        self.services.embedded.rename_table(table, new_name);
    }
}

/// All connectors, as the planner sees them.
pub fn descriptors() -> ConnectorRegistry {
    let all: [Arc<dyn ConnectorDescriptor>; 7] = [
        Arc::new(blackhole::descriptor()),
        Arc::new(DatagenDescriptor),
        Arc::new(EmbeddedDescriptor),
        Arc::new(FilesystemDescriptor),
        Arc::new(MemoryDescriptor),
        Arc::new(NexmarkDescriptor),
        Arc::new(print::descriptor()),
    ];
    ConnectorRegistry(all.into_iter().map(|descriptor| (descriptor.name(), descriptor)).collect())
}

fn unknown(name: &str) -> Error {
    let known = descriptors();
    let error = Error::new(ErrorKind::InvalidOption, format!("connector '{name}' not found"));
    match nearest(name, known.0.keys().copied()) {
        Some(near) => error.with_hint(format!("did you mean '{near}'?")),
        None => error.with_hint(format!("available connectors: {}", known.0.keys().copied().collect::<Vec<_>>().join(", "))),
    }
}

impl ConnectorFactory for BuiltinConnectors {
    fn source(&self, spec: &SourceSpec) -> Result<Box<dyn Source>> {
        match spec.connector.as_str() {
            datagen::NAME => Ok(Box::new(datagen::source(spec)?)),
            embedded::NAME => Ok(Box::new(EmbeddedSource::new(spec, &self.services.embedded))),
            filesystem::NAME => Ok(Box::new(FilesystemSource::new(spec)?)),
            memory::NAME => Ok(Box::new(MemorySource::new(spec, &self.services.memory)?)),
            nexmark::NAME => Ok(Box::new(nexmark::source(spec)?)),
            name @ (blackhole::NAME | print::NAME) => Err(no_source(name)),
            other => Err(unknown(other)),
        }
    }

    fn sink(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn SinkWriter>> {
        match spec.connector.as_str() {
            blackhole::NAME => Ok(Box::<BlackholeWriter>::default()),
            print::NAME => {
                let ConnectorServices { stdout, stderr, .. } = &self.services;
                Ok(Box::new(PrintWriter::new(spec, &context, stdout, stderr)?))
            }
            filesystem::NAME => Ok(Box::new(FileSink::new(spec, &context, &self.boards)?)),
            memory::NAME => Ok(Box::new(MemoryWriter::new(spec, &context, &self.services.memory)?)),
            name @ (datagen::NAME | embedded::NAME | nexmark::NAME) => Err(no_sink(name)),
            other => Err(unknown(other)),
        }
    }

    fn committer(&self, spec: &SinkSpec, job: JobId, operator: OperatorId) -> Result<Option<Box<dyn Committer>>> {
        Ok(match spec.connector.as_str() {
            filesystem::NAME => Some(Box::new(FileCommitter::new(spec, self.boards.of(job, operator))?)),
            memory::NAME => Some(Box::new(MemoryCommitter::new(job, operator, &self.services.memory))),
            _ => None,
        })
    }

    fn release_job(&self, job: JobId) {
        self.boards.release_job(job);
        self.services.memory.staging().drop_job(job);
    }
}
