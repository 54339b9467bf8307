//! Storage for checkpoints, in memory, that survives crashes of the simulated process and fails now and then.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, UploadPart,
};

use super::faults::Faults;
use crate::cluster::checkpoint::{FoundCheckpoint, find_checkpoints};
use crate::error::Result;
use crate::runtime::checkpoint::{CheckpointStore, LocalStores, Stores};

/// Storage that fails now and then.
#[derive(Debug)]
pub struct FailingStores {
    stores: Arc<LocalStores>,
    faults: Faults,
}

impl FailingStores {
    /// Over storage that does not.
    pub fn new(stores: Arc<LocalStores>, faults: Faults) -> Self {
        FailingStores { stores, faults }
    }

    /// Whether the directory of a job holds a checkpoint that is complete.
    pub fn has_checkpoint(&self, directory: &str) -> bool {
        let Ok(store) = CheckpointStore::open(&*self.stores, directory) else { return false };
        let checkpoints = store.directories().unwrap_or_default();
        checkpoints.iter().any(|name| store.exists(&format!("{name}/_metadata")).unwrap_or(false))
    }

    /// Whether the last checkpoint of a job refers to what earlier ones wrote.
    pub fn refers_to_earlier_ones(&self, directory: &str) -> bool {
        let found = find_checkpoints(&*self.stores, directory).expect("the job has a checkpoint");
        let earlier = |found: &FoundCheckpoint| {
            let own = format!("/{}/", found.manifest.checkpoint);
            found.manifest.shared_files().any(|file| !file.contains(&own))
        };
        found.checkpoints.iter().any(earlier)
    }
}

impl Stores for FailingStores {
    fn open(&self, directory: &str, create: bool) -> Result<Arc<dyn ObjectStore>> {
        self.faults.strike("opening storage")?;
        Ok(Arc::new(FailingStore { store: self.stores.open(directory, create)?, faults: self.faults.clone() }))
    }
}

#[derive(Debug)]
struct FailingStore {
    store: Arc<dyn ObjectStore>,
    faults: Faults,
}

impl fmt::Display for FailingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failing {}", self.store)
    }
}

fn strike(faults: &Faults, operation: &str) -> object_store::Result<()> {
    faults.strike(operation).map_err(|source| object_store::Error::Generic { store: "simulation", source: Box::new(source) })
}

#[async_trait]
impl ObjectStore for FailingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        strike(&self.faults, "writing")?;
        self.store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        strike(&self.faults, "beginning to write")?;
        let upload = self.store.put_multipart_opts(location, options).await?;
        Ok(Box::new(FailingUpload { upload, faults: self.faults.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        strike(&self.faults, "reading")?;
        self.store.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        strike(&self.faults, "listing")?;
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        strike(&self.faults, "copying")?;
        self.store.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FailingUpload {
    upload: Box<dyn MultipartUpload>,
    faults: Faults,
}

#[async_trait]
impl MultipartUpload for FailingUpload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        match strike(&self.faults, "writing a part") {
            Ok(()) => self.upload.put_part(payload),
            Err(fault) => Box::pin(async { Err(fault) }),
        }
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        strike(&self.faults, "completing a file")?;
        self.upload.complete().await
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.upload.abort().await
    }
}
