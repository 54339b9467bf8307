//! Tells whoever writes for a checkpoint that nobody has a use for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// Whether a checkpoint was given up. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    /// It was.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// An error if it was: what is written for it may stop.
    pub fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Cancelled, "the checkpoint was given up")),
            false => Ok(()),
        }
    }
}
