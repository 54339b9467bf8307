//! Room on the stack: all that handles queries and plans recurses, and a query may be nested deeply.
//!
//! Nesting is bounded ([`super::binder`]), so the room that planning takes is bounded too. It is more than a thread of the standard
//! library has in a debug build, so planning goes to a stack of its own where too little is left.

/// What planning takes at most.
const ROOM: usize = 16 << 20;

/// Runs a part of planning with enough room.
pub(super) fn with_room<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM, 2 * ROOM, f)
}
