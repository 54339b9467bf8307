//! The bytes that state may take in this process: every task reports what its tables hold, and the one that exceeds the limit fails
//! with an error that says what to do, before the system kills the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::error::{Error, ErrorKind, Result};

/// The bytes of state of a process.
#[derive(Debug, Default)]
pub struct MemoryManager {
    bytes_max: usize,
    bytes: AtomicUsize,
}

impl MemoryManager {
    /// With a limit; 0 = without.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(MemoryManager { bytes_max, bytes: AtomicUsize::new(0) })
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
        if self.manager.bytes_max == 0 || all <= self.manager.bytes_max {
            return Ok(());
        }
        let message = format!("state takes {all} bytes, more than the limit of {}", self.manager.bytes_max);
        Err(Error::new(ErrorKind::OutOfMemory, message)
            .with_hint("raise 'memory.limit', or keep less state: a window, or 'table.exec.state.ttl'"))
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
