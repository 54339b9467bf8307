//! One part file: hidden while it is written, visible when it is whole, gone when it is dropped before that and nobody else has taken it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use super::path::io_error;
use crate::error::Result;

/// A part file that is being written. It is open only while bytes are written out: a writer may have thousands of parts.
#[derive(Debug)]
pub struct Part {
    /// Bytes that are not written out yet.
    pub buffer: Vec<u8>,
    folder: PathBuf,
    name: String,
    written: u64,
    created_ms: i64,
    /// Whether it is visible, or someone else's.
    handed_on: bool,
}

impl Part {
    /// A part of this name; nothing exists until bytes are written out.
    pub fn new(folder: PathBuf, name: &str, created_ms: i64) -> Self {
        Part { buffer: Vec::new(), folder, name: name.to_string(), written: 0, created_ms, handed_on: false }
    }

    /// When it was begun.
    pub fn created_ms(&self) -> i64 {
        self.created_ms
    }

    /// Its size so far.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn hidden_path(&self) -> PathBuf {
        self.folder.join(hidden_name(&self.name))
    }

    /// Moves the buffer to the hidden file.
    pub fn write_out(&mut self) -> Result<()> {
        if self.buffer.is_empty() && self.written > 0 {
            return Ok(());
        }
        let path = self.hidden_path();
        if self.written == 0 {
            fs::create_dir_all(&self.folder).map_err(|error| {
                let error = io_error("create the folder", &self.folder, error);
                // Without the slash at its end, by which the system looks into it.
                let folder: PathBuf = self.folder.components().collect();
                match folder.ancestors().find(|above| above.is_file()) {
                    Some(file) => error
                        .with_detail(format!("'{}' is a file", file.display()))
                        .with_hint("option 'path' of a table that is written names a folder"),
                    None => error,
                }
            })?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(&self.buffer));
        // From here on something may be there to be removed.
        self.written += self.buffer.len() as u64;
        written.map_err(|error| io_error("write", &path, error))?;
        self.buffer.clear();
        Ok(())
    }

    /// Makes the part visible.
    pub fn publish(mut self) -> Result<()> {
        self.write_out()?;
        let path = self.folder.join(&self.name);
        fs::rename(self.hidden_path(), &path).map_err(|error| io_error("rename a part to", &path, error))?;
        self.handed_on = true;
        Ok(())
    }

    /// Closes the part, on the disk whatever happens to this machine, and leaves it to others to make it visible or to remove it. Gives
    /// its name.
    pub fn hand_over(mut self) -> Result<String> {
        self.write_out()?;
        let path = self.hidden_path();
        fs::File::open(&path).and_then(|file| file.sync_all()).map_err(|error| io_error("write", &path, error))?;
        self.handed_on = true;
        Ok(std::mem::take(&mut self.name))
    }
}

/// The name of a part before it is visible.
pub fn hidden_name(name: &str) -> String {
    format!(".{name}{HIDDEN_END}")
}

/// How such a name ends.
pub const HIDDEN_END: &str = ".inprogress";

impl Drop for Part {
    fn drop(&mut self) {
        if !self.handed_on && self.written > 0 {
            // Nobody is left to tell; a hidden file that stays does no harm.
            let _ = fs::remove_file(self.hidden_path());
        }
    }
}
