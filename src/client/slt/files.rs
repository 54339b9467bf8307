//! Which files are tests, and which modes they skip.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// A file to run: all of it, or the record at a line with the statements before it.
#[derive(Debug, Clone)]
pub struct TestFile {
    /// Where it is.
    pub path: PathBuf,
    /// The line of the one record that is wanted.
    pub line: Option<u32>,
    /// Modes that the file skips, with its reason: `# skip credit-1: reason`.
    pub skips: Vec<(String, String)>,
}

impl TestFile {
    /// Whether it skips a mode.
    pub fn skips(&self, mode: &str) -> bool {
        self.skips.iter().any(|(skipped, _)| skipped == mode)
    }
}

/// The files of these paths: a folder stands for all `*.slt` below it, `file.slt:12` for the record at that line.
pub fn find_files(paths: &[String]) -> Result<Vec<TestFile>> {
    let mut found = Vec::new();
    for path in paths {
        let (path, line) = match path.rsplit_once(':') {
            Some((file, line)) if !line.is_empty() && line.chars().all(|c| c.is_ascii_digit()) => (file, line.parse().ok()),
            _ => (path.as_str(), None),
        };
        collect(Path::new(path), line, &mut found)?;
    }
    if found.is_empty() {
        return Err(Error::new(ErrorKind::FileNotFound, format!("no *.slt file in {}", paths.join(", "))));
    }
    Ok(found)
}

fn collect(path: &Path, line: Option<u32>, found: &mut Vec<TestFile>) -> Result<()> {
    if !path.is_dir() {
        let text = std::fs::read_to_string(path).map_err(|cause| {
            let error = Error::from(cause);
            Error::new(error.kind(), format!("cannot read '{}'", path.display())).with_detail(error.message().to_string())
        })?;
        found.push(TestFile { path: path.to_path_buf(), line, skips: skips(&text) });
        return Ok(());
    }
    let mut entries = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Files whose name begins with `_` are included by others.
        if entry.is_dir() || (name.ends_with(".slt") && !name.starts_with('_')) {
            collect(&entry, None, found)?;
        }
    }
    Ok(())
}

fn skips(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# skip "));
    lines.filter_map(|rest| rest.split_once(':')).map(|(mode, why)| (mode.trim().to_string(), why.trim().to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_give_their_tests_and_lines_their_record() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        for name in ["b.slt", "deep/a.slt", "_included.slt", "data.csv"] {
            std::fs::write(folder.path().join(name), "# description: x\n# skip credit-1: too slow\n").unwrap();
        }
        let root = folder.path().display().to_string();
        let found = find_files(std::slice::from_ref(&root)).unwrap();
        let names: Vec<_> = found.iter().map(|file| file.path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("b.slt"), Path::new("deep/a.slt")]);
        assert!(found[0].skips("credit-1") && !found[0].skips("default"));
        assert_eq!(find_files(&[format!("{root}/b.slt:12")]).unwrap()[0].line, Some(12));
        assert_eq!(find_files(&[format!("{root}/none.slt")]).unwrap_err().kind(), ErrorKind::FileNotFound);
        assert!(find_files(&[format!("{root}/empty")]).is_err());
    }
}
