//! Which files a `path` stands for: one file, all below a folder, or those that match a pattern.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// What the option `path` stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePath {
    /// As the user gave it.
    given: String,
    /// Absolute, or as absolute as the base allows.
    resolved: PathBuf,
}

impl TablePath {
    /// The path of a table: a `file:` scheme is taken off, a relative path starts from `base`.
    pub fn new(given: &str, base: &Path) -> Result<Self> {
        let local = match given.split_once("://") {
            Some(("file", rest)) => rest.find('/').map_or("", |root| &rest[root..]),
            Some((scheme, _)) => {
                return Err(Error::unsupported(format!("file system '{scheme}://'"))
                    .with_hint("copy the files to a local path, or mount it"));
            }
            None => given.strip_prefix("file:").unwrap_or(given),
        };
        if local.trim().is_empty() || local.contains('\0') {
            return Err(Error::new(ErrorKind::InvalidOption, format!("value '{given}' does not fit option 'path'"))
                .with_hint("give a file or a folder"));
        }
        Ok(TablePath { given: given.to_string(), resolved: base.join(local) })
    }

    /// The folder or file itself.
    pub fn resolved(&self) -> &Path {
        &self.resolved
    }

    /// All files that it stands for, sorted by name, numbers in names by their value (the tenth part comes after the second). Files and folders whose names begin with `.` or `_` are left out below a folder.
    pub fn list(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        match std::fs::metadata(&self.resolved) {
            Ok(metadata) if metadata.is_dir() => self.list_folder(&self.resolved, &mut files)?,
            Ok(_) => files.push(self.resolved.clone()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.list_pattern(&mut files)?,
            Err(error) => return Err(self.error(&self.resolved, error)),
        }
        let bytes = |path: &PathBuf| path.as_os_str().as_encoded_bytes().to_vec();
        files.sort_by(|a, b| natural_order(&bytes(a), &bytes(b)).then_with(|| a.cmp(b)));
        Ok(files)
    }

    fn list_folder(&self, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
        for entry in std::fs::read_dir(folder).map_err(|error| self.error(folder, error))? {
            let path = entry.map_err(|error| self.error(folder, error))?.path();
            if is_hidden(&path) {
                continue;
            }
            match std::fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {
                    refuse_loop(&path)?;
                    self.list_folder(&path, files)?;
                }
                Ok(_) => files.push(path),
                // Gone since the folder was read: a temporary file of a writer.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.error(&path, error)),
            }
        }
        Ok(())
    }

    fn list_pattern(&self, files: &mut Vec<PathBuf>) -> Result<()> {
        let pattern = self.resolved.to_string_lossy();
        if !self.given.contains(['*', '?', '[']) {
            return Err(self.not_found("file or folder"));
        }
        let found = glob::glob(&pattern).map_err(|error| {
            Error::new(ErrorKind::InvalidOption, format!("value '{}' does not fit option 'path'", self.given))
                .with_detail(format!("it is no pattern: {}", error.msg))
                .with_hint("in a pattern, * and ? stand for any characters, [abc] for one of them, [[] for [ itself")
        })?;
        let mut any = false;
        for path in found {
            let path = path.map_err(|error| self.error(error.path(), std::io::Error::from(error.error().kind())))?;
            any = true;
            if path.is_dir() {
                self.list_folder(&path, files)?;
            } else if !is_hidden(&path) {
                files.push(path);
            }
        }
        if any { Ok(()) } else { Err(self.not_found("file that matches")) }
    }

    fn not_found(&self, what: &str) -> Error {
        Error::new(ErrorKind::FileNotFound, format!("no {what} '{}'", self.given))
            .with_detail(format!("it was looked for at {}", self.resolved.display()))
            .with_hint("check option 'path'; a relative path starts from the folder of the script, or else the current folder")
    }

    fn error(&self, path: &Path, error: std::io::Error) -> Error {
        io_error("read", path, error)
    }
}

/// A link to a folder around it would be followed without end, and each file read as often.
fn refuse_loop(folder: &Path) -> Result<()> {
    if !folder.is_symlink() {
        return Ok(());
    }
    let (Ok(target), Some(Ok(parent))) = (folder.canonicalize(), folder.parent().map(Path::canonicalize)) else { return Ok(()) };
    if !parent.starts_with(&target) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Io, format!("cannot read '{}'", folder.display()))
        .with_detail(format!("it links to '{}', in which it lies itself", target.display()))
        .with_hint("remove the link, or give a pattern that does not match it"))
}

/// The operating system refused something with a file.
pub fn io_error(action: &str, path: &Path, error: std::io::Error) -> Error {
    let kind = Error::from(std::io::Error::from(error.kind())).kind();
    let refused = Error::new(kind, format!("cannot {action} '{}'", path.display())).with_detail(error.to_string());
    match kind {
        ErrorKind::PermissionDenied => refused.with_hint("give the user that runs this process the right to it"),
        ErrorKind::DiskFull => refused.with_hint("free space, or write to another disk"),
        _ => refused,
    }
}

/// Byte by byte, but stretches of digits by the number that they write.
fn natural_order(mut a: &[u8], mut b: &[u8]) -> Ordering {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    loop {
        let (in_a, in_b) = (digits(a), digits(b));
        let (order, step) = if in_a > 0 && in_b > 0 {
            let number = |text: &[u8], length: usize| {
                let zeros = text[..length].iter().take_while(|byte| **byte == b'0').count();
                (length - zeros, text[zeros..length].to_vec())
            };
            (number(a, in_a).cmp(&number(b, in_b)), (in_a, in_b))
        } else {
            match (a.first(), b.first()) {
                (Some(first), Some(second)) => (first.cmp(second), (1, 1)),
                _ => return a.len().cmp(&b.len()),
            }
        };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (&a[step.0..], &b[step.1..]);
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_ordered_by_their_value() {
        let mut names =
            ["part-a-0-10", "part-a-0-2", "part-a-1-0", "part-a-0-002b", "b", "part-a-0-2a", "part", "p=9/x", "p=10/x"];
        names.sort_by(|a, b| natural_order(a.as_bytes(), b.as_bytes()));
        let expected =
            ["b", "p=9/x", "p=10/x", "part", "part-a-0-2", "part-a-0-2a", "part-a-0-002b", "part-a-0-10", "part-a-1-0"];
        assert_eq!(names, expected);
    }

    #[test]
    fn schemes_are_taken_off_and_relative_paths_have_a_base() {
        let resolved = |given| TablePath::new(given, Path::new("/base")).map(|path| path.resolved);
        assert_eq!(resolved("a/b.json").unwrap(), Path::new("/base/a/b.json"));
        assert_eq!(resolved("file:///x/y").unwrap(), Path::new("/x/y"));
        assert_eq!(resolved("file:/x/y").unwrap(), Path::new("/x/y"));
        assert_eq!(resolved("s3://bucket/x").unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn folders_are_read_to_the_bottom_without_hidden_files() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["b.json", "a/2.json", "a/1.json", ".hidden/x.json", "_temporary", "a/.part.inprogress"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let names = |given: &str| {
            let list = TablePath::new(given, folder.path()).unwrap().list();
            list.map(|files| {
                files.iter().map(|file| file.strip_prefix(folder.path()).unwrap().display().to_string()).collect::<Vec<_>>()
            })
        };
        assert_eq!(names(".").unwrap(), ["a/1.json", "a/2.json", "b.json"]);
        assert_eq!(names("a/*.json").unwrap(), ["a/1.json", "a/2.json"]);
        let missing = names("none.json").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::FileNotFound);
        assert!(missing.render().contains("no file or folder 'none.json'"), "{}", missing.render());
    }
}
