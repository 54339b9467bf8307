//! Fencing: a call carries the token of the leader that the caller believes in, and an endpoint refuses any other than its own.
//! So a deposed master can do no harm: what it still has on its way is refused.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// Who leads, as far as one knows: the leader's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FencingToken(pub u128);

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({self})")
    }
}

/// Whether a call with the token `given` may pass at an endpoint whose token is `own` (none = not fenced).
pub(super) fn check(own: Option<FencingToken>, given: Option<FencingToken>) -> Result<()> {
    match (own, given) {
        (own, given) if own == given => Ok(()),
        (Some(own), Some(given)) => Err(Error::new(ErrorKind::Fenced, format!("fencing token {given} is not the current one"))
            .with_detail(format!("the current token is {own}"))
            .with_hint("connect to the current leader")),
        (Some(_), None) => Err(Error::new(ErrorKind::Fenced, "the endpoint is fenced, the call carries no fencing token")
            .with_hint("connect with the fencing token of the current leader")),
        (None, _) => Err(Error::new(ErrorKind::Fenced, "the call carries a fencing token, the endpoint has none")
            .with_hint("wait until the endpoint has a leader, or connect without a token")),
    }
}
