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
use super::lock::Lock;
use super::part::Part;
use crate::error::{Error, ErrorKind, Result};

/// The scheme of directories in the memory of this process.
pub const MEMORY_SCHEME: &str = "memory://";

/// A file with fewer bytes is handed over at once.
const SMALL_FILE_BYTES: usize = 128 << 10;

/// The storage of a process. The seam for those who want another one: a simulation whose storage fails, say.
pub trait Stores: Send + Sync + fmt::Debug {
    /// The storage below a directory. `create`: it is going to be written to.
    fn open(&self, directory: &str, create: bool) -> Result<Arc<dyn ObjectStore>>;

    /// Removes a directory that holds no file, with those in it: what is given up leaves them behind. Others do not mind.
    fn sweep(&self, _directory: &str) {}

    /// Takes a file below a directory for this process; none = another one has it. `create`: it may have to be made.
    fn lock(&self, _directory: &str, _file: &str, _create: bool) -> Result<Option<Lock>> {
        Ok(Some(Lock::default()))
    }
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
        let path = path_of(directory)?;
        let is_there = if create { std::fs::create_dir_all(path) } else { std::fs::metadata(path).map(drop) };
        is_there.map_err(|cause| unusable(directory, &Error::from(cause)))?;
        let store = LocalFileSystem::new_with_prefix(path).map_err(|cause| unusable(directory, &store_error(cause)))?;
        Ok(Arc::new(DirectStore(store.with_automatic_cleanup(true).with_fsync(true))))
    }

    fn sweep(&self, directory: &str) {
        if let (false, Ok(path)) = (directory.starts_with(MEMORY_SCHEME), path_of(directory)) {
            remove_empty(path);
        }
    }

    fn lock(&self, directory: &str, file: &str, create: bool) -> Result<Option<Lock>> {
        match directory.starts_with(MEMORY_SCHEME) {
            true => Ok(Some(Lock::default())),
            false => Lock::take(&path_of(directory)?.join(file), create),
        }
    }
}

fn remove_empty(directory: &FilePath) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // One that is not empty stays.
    let _ = std::fs::remove_dir(directory);
}

/// A directory of this machine.
fn path_of(directory: &str) -> Result<&FilePath> {
    match directory.split_once("://") {
        Some(("file", path)) => Ok(FilePath::new(path)),
        Some((scheme, _)) => {
            let error = Error::unsupported(format!("a checkpoint directory with scheme '{scheme}'"));
            Err(error.with_hint("give a directory of this machine"))
        }
        None => Ok(FilePath::new(directory.strip_prefix("file:").unwrap_or(directory))),
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
        Upload { store: self.clone(), file: file.to_string(), small: Vec::new(), part: None, parts: None, written: 0 }
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
    /// All of it, as long as it is a small file.
    small: Vec<u8>,
    /// What is gathered of a large one.
    part: Option<Part>,
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
        if (self.written as usize) < SMALL_FILE_BYTES {
            self.small.extend_from_slice(bytes);
            return Ok(());
        }
        let small = std::mem::take(&mut self.small);
        self.gather(&small)?;
        self.gather(bytes)
    }

    fn gather(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let part = self.part.get_or_insert_with(Part::new);
            bytes = part.fill(bytes);
            if part.is_full() {
                self.send_part()?;
            }
        }
        Ok(())
    }

    fn send_part(&mut self) -> Result<()> {
        let Some(part) = self.part.take().filter(|part| !part.is_empty()) else { return Ok(()) };
        let parts = match &mut self.parts {
            Some(parts) => Ok(parts),
            none => block_on(self.store.store.put_multipart(&Path::from(self.file.as_str()))).map(|parts| none.insert(parts)),
        };
        // The same memory serves for the next part: new memory costs as much as the copy.
        let sent = parts.and_then(|parts| part.hand_over(|bytes| block_on(parts.put_part(bytes.into()))));
        self.part = sent.map_err(|cause| self.store.failed("write", &self.file, cause))?;
        Ok(())
    }

    /// The file is whole.
    pub fn complete(mut self) -> Result<()> {
        if (self.written as usize) < SMALL_FILE_BYTES {
            return self.store.put(&self.file, std::mem::take(&mut self.small));
        }
        self.send_part()?;
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
