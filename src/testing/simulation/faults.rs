//! What goes wrong in a simulation, and when: chosen by the seed.

use std::sync::{Arc, Mutex};

use crate::error::{Error, ErrorKind, Result};

/// Chooses what goes wrong. Clones are the same.
#[derive(Debug, Clone)]
pub struct Faults {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    random: fastrand::Rng,
    /// One in so many operations fails; none = all succeed.
    one_in: Option<u32>,
    struck: u64,
}

impl Faults {
    /// One in so many operations fails; none = all succeed.
    pub fn new(seed: u64, one_in: Option<u32>) -> Self {
        let state = State { random: fastrand::Rng::with_seed(seed), one_in, struck: 0 };
        Faults { state: Arc::new(Mutex::new(state)) }
    }

    /// Fails, or not.
    pub fn strike(&self, operation: &str) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        let Some(one_in) = state.one_in else { return Ok(()) };
        if state.random.u32(..one_in) != 0 {
            return Ok(());
        }
        state.struck += 1;
        Err(Error::new(ErrorKind::Io, format!("{operation} fails in this simulation")))
    }

    /// From now on all goes well.
    pub fn cease(&self) {
        self.state.lock().unwrap().one_in = None;
    }

    /// How many operations have failed.
    pub fn struck(&self) -> u64 {
        self.state.lock().unwrap().struck
    }
}
