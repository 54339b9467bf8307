//! Directories of this machine whose large files are written past the page cache.
//!
//! State is written to be read after a failure at best. In the page cache it would take the place of what is read all the time, and new memory
//! from the system, which costs more than all else that is done for a checkpoint. Where a file system does not know of it, files are written
//! as others are.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path as FilePath, PathBuf};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::ready;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use super::part::{BLOCK_BYTES, Part, is_in_place};

/// A directory of this machine.
#[derive(Debug)]
pub(super) struct DirectStore(pub(super) LocalFileSystem);

impl fmt::Display for DirectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for DirectStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        match DirectUpload::create(self.0.path_to_filesystem(location)?) {
            Ok(upload) => Ok(Box::new(upload)),
            // Another error than that this cannot be done comes again.
            Err(_) => self.0.put_multipart_opts(location, options).await,
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

/// A file in the making, under another name.
#[derive(Debug)]
struct DirectUpload {
    file: DirectFile,
    staging: PathBuf,
    path: PathBuf,
}

impl DirectUpload {
    fn create(path: PathBuf) -> io::Result<Self> {
        // Names of this form are not listed.
        let mut staging = path.clone().into_os_string();
        staging.push("#1");
        let staging = PathBuf::from(staging);
        let file = DirectFile::create(&staging).or_else(|_| {
            std::fs::create_dir_all(path.parent().unwrap_or(FilePath::new(".")))?;
            // The directory itself, and the one that it may have needed, are to last too.
            path.ancestors().skip(2).take(2).try_for_each(|above| File::open(above)?.sync_all())?;
            DirectFile::create(&staging)
        })?;
        Ok(DirectUpload { file, staging, path })
    }

    fn publish(&mut self) -> io::Result<()> {
        self.file.finish()?;
        std::fs::rename(&self.staging, &self.path)?;
        // The name lasts when the directory does.
        self.path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }
}

fn failed(cause: io::Error) -> Error {
    Error::Generic { store: "LocalFileSystem", source: Box::new(cause) }
}

#[async_trait]
impl MultipartUpload for DirectUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let written = data.iter().try_for_each(|bytes| self.file.write(bytes));
        ready(written.map_err(failed)).boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.publish().map_err(failed)?;
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn abort(&mut self) -> Result<()> {
        std::fs::remove_file(&self.staging).map_err(failed)
    }
}

/// A file that is written past the page cache, from start to end.
struct DirectFile {
    file: File,
    /// What lies at other places in memory goes through this.
    part: Part,
    written: u64,
}

impl fmt::Debug for DirectFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectFile").field("file", &self.file).field("written", &self.written).finish_non_exhaustive()
    }
}

impl DirectFile {
    fn create(path: &FilePath) -> io::Result<Self> {
        let file = open_direct(OpenOptions::new().write(true).create(true).truncate(true), path)?;
        let part = Part::new();
        if !is_in_place(part.bytes()) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        Ok(DirectFile { file, part, written: 0 })
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.part.is_empty() && is_in_place(bytes) {
            let (blocks, rest) = bytes.split_at(bytes.len() / BLOCK_BYTES * BLOCK_BYTES);
            self.file.write_all(blocks)?;
            self.written += blocks.len() as u64;
            bytes = rest;
        }
        while !bytes.is_empty() {
            bytes = self.part.fill(bytes);
            if self.part.is_full() {
                self.write_out()?;
            }
        }
        Ok(())
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.file.write_all(self.part.blocks())?;
        self.written += self.part.bytes().len() as u64;
        self.part.clear();
        Ok(())
    }

    /// Writes the rest, as a whole block that is cut to its length afterwards, and waits until all of it will last.
    fn finish(&mut self) -> io::Result<()> {
        if !self.part.is_empty() {
            self.write_out()?;
        }
        self.file.set_len(self.written)?;
        self.file.sync_all()
    }
}

#[cfg(target_os = "linux")]
fn open_direct(options: &mut OpenOptions, path: &FilePath) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(libc::O_DIRECT).open(path)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_options: &mut OpenOptions, _path: &FilePath) -> io::Result<File> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use futures::executor::block_on;
    use object_store::ObjectStoreExt;

    use super::*;

    #[test]
    fn a_file_of_any_length_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = DirectStore(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
        for length in [1, 4_095, 4_096, 4_097, Part::BYTES, Part::BYTES + 1, 3 * Part::BYTES + 12_345] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            let path = Path::from(format!("a/{length}/file.arrow"));
            let mut upload = block_on(store.put_multipart(&path)).unwrap();
            for part in bytes.chunks(700_001) {
                block_on(upload.put_part(Bytes::copy_from_slice(part).into())).unwrap();
            }
            assert!(block_on(store.head(&path)).is_err(), "it is there whole or not at all");
            block_on(upload.complete()).unwrap();
            let read = block_on(async { store.get(&path).await.unwrap().bytes().await.unwrap() });
            assert!(read == bytes, "{length} bytes");
        }
    }

    #[test]
    fn what_is_given_up_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn ObjectStore> = Arc::new(DirectStore(LocalFileSystem::new_with_prefix(folder.path()).unwrap()));
        let mut upload = block_on(store.put_multipart(&Path::from("file"))).unwrap();
        block_on(upload.put_part(vec![1; 10].into())).unwrap();
        block_on(upload.abort()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
