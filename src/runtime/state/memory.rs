//! The bytes that state and channels may take in this process, under one limit that the user sets.
//!
//! State comes first: every task reports what its tables hold, and the one that exceeds the limit fails with an error that says what
//! to do, before the system kills the process. Channels may take what state leaves; when that is used up, producers wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::error::{Error, ErrorKind, Result};

/// The bytes of state of a process, and the limit for state and channels.
#[derive(Debug, Default)]
pub struct MemoryManager {
    bytes_max: AtomicUsize,
    bytes: AtomicUsize,
}

impl MemoryManager {
    /// With a limit; 0 = without.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(MemoryManager { bytes_max: AtomicUsize::new(bytes_max), bytes: AtomicUsize::new(0) })
    }

    /// Another limit from now on; 0 = without.
    pub fn set_limit(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, SeqCst);
    }

    /// Bytes that state leaves to others; none = without limit.
    pub fn left(&self) -> Option<usize> {
        let bytes_max = self.bytes_max.load(SeqCst);
        (bytes_max > 0).then(|| bytes_max.saturating_sub(self.bytes()))
    }

    /// Bytes reported by all.
    pub fn bytes(&self) -> usize {
        self.bytes.load(SeqCst)
    }

    /// A share, empty at first.
    pub fn share(self: &Arc<Self>) -> MemoryShare {
        MemoryShare { manager: Arc::clone(self), bytes: 0 }
    }
}

/// What one task reported. Dropping it gives the bytes back.
#[derive(Debug)]
pub struct MemoryShare {
    manager: Arc<MemoryManager>,
    bytes: usize,
}

impl MemoryShare {
    /// Reports what is held now. Fails when that is more than before and all together exceed the limit.
    pub fn report(&mut self, bytes: usize) -> Result<()> {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            self.manager.bytes.fetch_sub(before - bytes, SeqCst);
            return Ok(());
        }
        let all = self.manager.bytes.fetch_add(bytes - before, SeqCst) + (bytes - before);
        let bytes_max = self.manager.bytes_max.load(SeqCst);
        if bytes_max == 0 || all <= bytes_max {
            return Ok(());
        }
        let message = format!("state takes {all} bytes, more than the limit of {bytes_max}");
        Err(Error::new(ErrorKind::OutOfMemory, message)
            .with_hint("raise 'memory.limit', or keep less state: filter earlier, or aggregate by a window"))
    }

    /// Bytes reported.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.manager.bytes.fetch_sub(self.bytes, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_limit_and_are_given_back() {
        let manager = MemoryManager::new(100);
        let (mut one, mut other) = (manager.share(), manager.share());
        one.report(60).unwrap();
        let error = other.report(50).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        drop(other);
        one.report(40).unwrap();
        assert_eq!(manager.bytes(), 40);
        drop(one);
        assert_eq!(manager.bytes(), 0);
    }
}
