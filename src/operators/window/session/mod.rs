//! SESSION windows: each key has sessions of its own, which grow with the rows and merge when a row fills the gap between two.
//!
//! One operator, [`SessionWindow`], places rows and closes sessions; what a session holds is its [`SessionContent`]: accumulators for an
//! aggregation, the rows themselves without one.

mod content;
mod open_sessions;
mod placed_rows;
mod session_groups;
mod session_rows;
mod session_state;
mod session_window;
mod shown_rows;
#[cfg(test)]
mod tests;
mod updating_groups;
mod updating_sessions;
#[cfg(test)]
mod updating_tests;

use content::SessionContent;
use session_groups::SessionGroups;
use session_rows::SessionRows;
pub use session_window::SessionWindow;
pub use updating_sessions::UpdatingSessions;
