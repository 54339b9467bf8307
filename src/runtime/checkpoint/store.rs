//! Where checkpoints are kept: directories on disk or in memory, behind `object_store`, so that others can stand in for them.
//!
//! All of it blocks: it runs on threads beside tasks and endpoints. A file is there whole or not at all.

use std::fmt;
use std::path::Path as FilePath;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};

use super::direct::DirectStore;
use crate::error::{Error, ErrorKind, Result};

/// The scheme of directories in the memory of this process.
pub const MEMORY_SCHEME: &str = "memory://";

/// Bytes that are gathered before they are handed to the store.
const PART_BYTES: usize = 4 << 20;
/// A file with fewer bytes is handed over at once.
const SMALL_FILE_BYTES: usize = 128 << 10;

/// The storage of a process. The seam for those who want another one: a simulation whose storage fails, say.
pub trait Stores: Send + Sync + fmt::Debug {
    /// The storage below a directory. `create`: it is going to be written to.
    fn open(&self, directory: &str, create: bool) -> Result<Arc<dyn ObjectStore>>;
}

/// Directories of this machine, and `memory://` ones of this process.
#[derive(Debug, Default)]
pub struct LocalStores {
    memory: Arc<InMemory>,
}

impl Stores for LocalStores {
    fn open(&self, directory: &str, create: bool) -> Result<Arc<dyn ObjectStore>> {
        if let Some(path) = directory.strip_prefix(MEMORY_SCHEME) {
            return Ok(Arc::new(PrefixStore::new(Arc::clone(&self.memory), Path::from(path))));
        }
        let path = match directory.split_once("://") {
            Some(("file", path)) => path,
            Some((scheme, _)) => {
                let error = Error::unsupported(format!("a checkpoint directory with scheme '{scheme}'"));
                return Err(error.with_hint("give a directory of this machine"));
            }
            None => directory.strip_prefix("file:").unwrap_or(directory),
        };
        let path = FilePath::new(path);
        let is_there = if create { std::fs::create_dir_all(path) } else { std::fs::metadata(path).map(drop) };
        is_there.map_err(|cause| unusable(directory, &Error::from(cause)))?;
        let store = LocalFileSystem::new_with_prefix(path).map_err(|cause| unusable(directory, &store_error(cause)))?;
        Ok(Arc::new(DirectStore(store.with_automatic_cleanup(true).with_fsync(true))))
    }
}

/// A directory in which nothing can be kept.
pub(super) fn unusable(directory: &str, cause: &Error) -> Error {
    Error::new(cause.kind(), format!("cannot use checkpoint directory '{directory}'"))
        .with_detail(cause.detail().unwrap_or(cause.message()))
        .with_hint("name a directory that can be written")
}

fn store_error(error: object_store::Error) -> Error {
    let kind = match &error {
        object_store::Error::NotFound { .. } => ErrorKind::FileNotFound,
        object_store::Error::PermissionDenied { .. } => ErrorKind::PermissionDenied,
        _ => ErrorKind::Io,
    };
    Error::new(kind, error.to_string())
}

/// The files below one directory.
#[derive(Debug, Clone)]
pub struct CheckpointStore {
    directory: String,
    store: Arc<dyn ObjectStore>,
}

impl CheckpointStore {
    /// The files below a directory that may have to be made.
    pub fn create(stores: &dyn Stores, directory: &str) -> Result<Self> {
        Ok(CheckpointStore { directory: directory.to_string(), store: stores.open(directory, true)? })
    }

    /// The files below a directory that is there.
    pub fn open(stores: &dyn Stores, directory: &str) -> Result<Self> {
        Ok(CheckpointStore { directory: directory.to_string(), store: stores.open(directory, false)? })
    }

    /// Where it is.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    fn failed(&self, what: &str, file: &str, cause: object_store::Error) -> Error {
        let cause = store_error(cause);
        let message = format!("cannot {what} '{}/{file}'", self.directory);
        Error::new(cause.kind(), message).with_detail(cause.message())
    }

    /// Writes a file whole.
    pub fn put(&self, file: &str, bytes: impl Into<Bytes>) -> Result<()> {
        let written = block_on(self.store.put(&Path::from(file), bytes.into().into()));
        written.map(drop).map_err(|cause| self.failed("write", file, cause))
    }

    /// Begins a file that is there once `Upload::complete` has returned.
    pub fn upload(&self, file: &str) -> Upload {
        Upload { store: self.clone(), file: file.to_string(), buffer: Vec::new(), parts: None, written: 0 }
    }

    /// A file's bytes.
    pub fn get(&self, file: &str) -> Result<Bytes> {
        let read = async { self.store.get(&Path::from(file)).await?.bytes().await };
        block_on(read).map_err(|cause| self.failed("read", file, cause))
    }

    /// A piece of a file.
    pub fn get_range(&self, file: &str, offset: u64, bytes: u64) -> Result<Bytes> {
        let file_path = Path::from(file);
        block_on(self.store.get_range(&file_path, offset..offset + bytes)).map_err(|cause| self.failed("read", file, cause))
    }

    /// Whether there is such a file.
    pub fn exists(&self, file: &str) -> Result<bool> {
        self.size(file).map(|size| size.is_some())
    }

    /// The bytes of a file; none = there is no such file.
    pub fn size(&self, file: &str) -> Result<Option<u64>> {
        match block_on(self.store.head(&Path::from(file))) {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(cause) => Err(self.failed("read", file, cause)),
        }
    }

    /// The names of the directories directly below.
    pub fn directories(&self) -> Result<Vec<String>> {
        let listed = block_on(self.store.list_with_delimiter(None)).map_err(|cause| self.failed("list", "", cause))?;
        Ok(listed
            .common_prefixes
            .iter()
            .filter_map(|prefix| prefix.parts().next_back())
            .map(|part| part.as_ref().to_string())
            .collect())
    }

    /// Deletes files. One that is not there is no error.
    pub fn delete(&self, files: impl IntoIterator<Item = String>) -> Result<()> {
        let files: Vec<_> = files.into_iter().map(|file| Ok(Path::from(file))).collect();
        self.delete_all("", futures::stream::iter(files).boxed())
    }

    /// Deletes all files below a directory. One that is not there is no error.
    pub fn delete_directory(&self, name: &str) -> Result<()> {
        let files = self.store.list(Some(&Path::from(name))).map(|found| found.map(|file| file.location)).boxed();
        self.delete_all(name, files)
    }

    fn delete_all(&self, name: &str, files: BoxStream<'static, object_store::Result<Path>>) -> Result<()> {
        block_on(async {
            let mut deleted = self.store.delete_stream(files);
            while let Some(result) = deleted.next().await {
                match result {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(cause) => return Err(self.failed("delete", name, cause)),
                }
            }
            Ok(())
        })
    }
}

/// A file in the making.
pub struct Upload {
    store: CheckpointStore,
    file: String,
    buffer: Vec<u8>,
    parts: Option<Box<dyn MultipartUpload>>,
    written: u64,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({})", self.file)
    }
}

impl Upload {
    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Adds bytes.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.written += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > PART_BYTES && !self.buffer.is_empty() {
            self.send_part()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn send_part(&mut self) -> Result<()> {
        let part = Bytes::from(std::mem::take(&mut self.buffer));
        let parts = match &mut self.parts {
            Some(parts) => Ok(parts),
            none => block_on(self.store.store.put_multipart(&Path::from(self.file.as_str()))).map(|parts| none.insert(parts)),
        };
        let sent = parts.and_then(|parts| block_on(parts.put_part(part.clone().into())));
        sent.map_err(|cause| self.store.failed("write", &self.file, cause))?;
        // The same memory serves for the next part: new memory costs as much as the copy.
        self.buffer = Vec::from(part);
        self.buffer.clear();
        Ok(())
    }

    /// The file is whole.
    pub fn complete(mut self) -> Result<()> {
        if self.parts.is_none() && self.buffer.len() < SMALL_FILE_BYTES {
            return self.store.put(&self.file, std::mem::take(&mut self.buffer));
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        let parts = self.parts.as_mut().expect("a part was sent");
        block_on(parts.complete()).map_err(|cause| self.store.failed("write", &self.file, cause))?;
        self.parts = None;
        Ok(())
    }
}

impl Drop for Upload {
    /// What was not completed is not left lying about.
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            let _ = block_on(parts.abort());
        }
    }
}
