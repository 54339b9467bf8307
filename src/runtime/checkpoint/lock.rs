//! Files that one process at a time holds. The system lets go of them when a process ends, however it does.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;

use crate::error::Result;

/// A file that this process holds until this is dropped. Where files cannot be held, nobody is kept out.
#[derive(Debug, Default)]
pub struct Lock(Option<File>);

impl Lock {
    /// Takes a file; none = another process holds it. Blocks, but waits for nobody.
    pub(super) fn take(path: &Path, create: bool) -> Result<Option<Self>> {
        if create && let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let Ok(file) = OpenOptions::new().write(true).create(create).truncate(false).open(path) else {
            return Ok(Some(Lock::default()));
        };
        Ok(match file.try_lock() {
            Ok(()) => Some(Lock(Some(file))),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(_)) => Some(Lock::default()),
        })
    }

    /// Replaces what stands in the file.
    pub fn write(&mut self, text: &str) -> Result<()> {
        if let Some(file) = &mut self.0 {
            file.set_len(0)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_a_file_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job/owner");
        assert!(Lock::take(&path, false).unwrap().is_some() && !path.exists(), "who only looks makes no file");
        let mut first = Lock::take(&path, true).unwrap().unwrap();
        first.write("it is mine").unwrap();
        assert!(Lock::take(&path, true).unwrap().is_none());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "it is mine");
        drop(first);
        assert!(Lock::take(&path, false).unwrap().is_some());
    }
}
