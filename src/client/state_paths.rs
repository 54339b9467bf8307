//! Where checkpoints lie, as a user says it: relative paths start where those of the statements do.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::{CHECKPOINT_DIR, RECOVERY_PATH, SAVEPOINT_DIR};

/// Makes the paths in a job's settings absolute: tasks may run elsewhere.
pub(super) fn resolve(settings: &mut BTreeMap<String, String>, base_dir: &Path) {
    for setting in [CHECKPOINT_DIR, SAVEPOINT_DIR, RECOVERY_PATH] {
        if let Some(path) = settings.get_mut(setting.key).filter(|path| !path.trim().is_empty()) {
            *path = absolute(path, base_dir);
        }
    }
}

/// A path from a folder on; one with a scheme stays as it is.
pub(super) fn absolute(path: &str, base_dir: &Path) -> String {
    let path = path.trim();
    if path.contains("://") || path.starts_with("file:") {
        return path.to_string();
    }
    let joined = base_dir.join(path);
    let absolute = std::path::absolute(&joined).unwrap_or(joined);
    absolute.to_string_lossy().into_owned()
}
