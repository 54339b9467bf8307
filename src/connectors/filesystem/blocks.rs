//! A file as blocks: blocking reads of about a megabyte, decompressed, cut at the end of a record.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use arrow::buffer::Buffer;

/// Bytes of a block when a reader has few files open: large enough that the calls into the system cost nothing, small enough for the
/// second-level cache.
const BLOCK_BYTES_MAX: usize = 1 << 20;
/// Bytes of a block when a reader has very many files open.
const BLOCK_BYTES_MIN: usize = 64 << 10;
/// Bytes that the blocks of all open files of a reader may take together, as long as the minimum allows.
const BLOCKS_BYTES: usize = 16 << 20;
/// A record may not be longer than this: it is a file of another format, or has no line ends.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// The kind of the error that a record is longer than any may be.
pub const RECORD_TOO_LONG: io::ErrorKind = io::ErrorKind::InvalidInput;

/// Buffers of blocks that are kept to be used again, at most.
const SPARE_BUFFERS_MAX: usize = 12;

/// The buffers of blocks that nobody reads any more: fresh memory for each block would cost as much as reading it.
#[derive(Debug, Default)]
pub struct SpareBuffers(VecDeque<Buffer>);

impl SpareBuffers {
    /// Keeps the buffer of a block, of which arrays may still hold parts.
    pub fn keep(&mut self, buffer: Buffer) {
        if buffer.capacity() > 2 * BLOCK_BYTES_MAX {
            return; // of a giant record
        }
        if self.0.len() == SPARE_BUFFERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(buffer);
    }

    /// A buffer that is free by now, or a new one.
    pub fn take(&mut self) -> Vec<u8> {
        for _ in 0..self.0.len() {
            let Some(buffer) = self.0.pop_front() else { break };
            match buffer.into_vec() {
                Ok(bytes) => return bytes,
                Err(in_use) => self.0.push_back(in_use),
            }
        }
        Vec::new()
    }
}

/// How a file is compressed, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

impl Compression {
    /// What the first bytes of a file say, whatever its name.
    pub fn by_content(path: &Path) -> Self {
        let mut first = [0; 4];
        match File::open(path).and_then(|mut file| file.read_exact(&mut first)) {
            Ok(()) if first.starts_with(&[0x1f, 0x8b]) => Compression::Gzip,
            Ok(()) if first == [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// The ending of the name.
    pub fn ending(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstd => ".zst",
        }
    }

    /// By the ending of the name.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz" | "gzip") => Compression::Gzip,
            Some("zst" | "zstd") => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

/// Bytes of a block for a reader with so many files open.
pub fn block_bytes(open_files: usize) -> usize {
    (BLOCKS_BYTES / open_files.max(1)).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX)
}

/// Reads a file, or a range of it, block by block. Offsets count decompressed bytes.
pub struct BlockReader {
    input: Box<dyn Read + Send>,
    /// Bytes that were read but belong to the next block.
    carry: Vec<u8>,
    /// Where the next block begins.
    offset: u64,
    /// The record that begins at or before this offset is the last one.
    end: Option<u64>,
    done: bool,
}

/// Bytes from the start of a record to the end of one.
#[derive(Debug)]
pub struct RawBlock {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where in the file they begin.
    pub offset: u64,
}

impl BlockReader {
    /// Opens a file at the start of a record.
    pub fn open(path: &Path, position: u64, end: Option<u64>) -> io::Result<Self> {
        let input = open_at(path, position)?;
        let done = end.is_some_and(|end| position > end);
        Ok(BlockReader { input, carry: Vec::new(), offset: position, end, done })
    }

    /// Reads as many bytes as fit or the file has.
    fn read(&mut self, mut into: &mut [u8]) -> io::Result<usize> {
        let wanted = into.len();
        while !into.is_empty() {
            match self.input.read(into) {
                Ok(0) => break,
                Ok(read) => into = &mut into[read..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(wanted - into.len())
    }

    /// Opens a range of a file that begins anywhere: the first record begins after the first line end at or after `start`.
    pub fn open_range(path: &Path, start: u64, end: Option<u64>) -> io::Result<Self> {
        let mut reader = BlockReader::open(path, start, end)?;
        if start == 0 {
            return Ok(reader);
        }
        // The record that begins at or before `start` belongs to the range before.
        loop {
            let mut bytes = vec![0; BLOCK_BYTES_MIN];
            let read = reader.read(&mut bytes)?;
            if read == 0 {
                reader.done = true;
                return Ok(reader);
            }
            bytes.truncate(read);
            match memchr::memchr(b'\n', &bytes) {
                Some(at) => {
                    reader.offset += at as u64 + 1;
                    reader.carry = bytes.split_off(at + 1);
                    reader.done = end.is_some_and(|end| reader.offset > end);
                    return Ok(reader);
                }
                None => reader.offset += bytes.len() as u64,
            }
        }
    }

    /// The next block of about `target` bytes, in `buffer`, whatever that held. `whole_records` says how many of some bytes are
    /// whole records.
    pub fn next(
        &mut self,
        target: usize,
        buffer: Vec<u8>,
        whole_records: impl Fn(&[u8]) -> Option<usize>,
    ) -> io::Result<Option<RawBlock>> {
        if self.done {
            return Ok(None);
        }
        let mut bytes = buffer;
        let mut filled = self.carry.len();
        // Old bytes are written over, not cleared: a block is as long as the one before it, more or less.
        bytes.resize(bytes.len().max(filled), 0);
        bytes[..filled].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            // Twice as much each time: what was read is looked through again for the end of a record.
            let wanted = target.max(filled);
            // One more for the line end that the last line of a file may lack.
            bytes.reserve((filled + wanted + 1).saturating_sub(bytes.len()));
            bytes.resize(filled + wanted, 0);
            let read = self.read(&mut bytes[filled..])?;
            filled += read;
            let whole = &bytes[..filled];
            if let Some(cut) = self.end_of_range(whole) {
                bytes.truncate(cut);
                self.done = true;
                return Ok(self.block(bytes));
            }
            if read < wanted {
                bytes.truncate(filled);
                self.done = true;
                return Ok(self.block(bytes));
            }
            if let Some(cut) = whole_records(whole) {
                self.carry.extend_from_slice(&whole[cut..]);
                bytes.truncate(cut);
                return Ok(self.block(bytes));
            }
            if filled > RECORD_BYTES_MAX {
                let (limit, offset) = (RECORD_BYTES_MAX >> 20, self.offset);
                let message = format!("the record that begins at byte {offset} is longer than {limit} MB");
                return Err(io::Error::new(RECORD_TOO_LONG, message));
            }
        }
    }

    fn end_of_range(&self, bytes: &[u8]) -> Option<usize> {
        let end = self.end?.saturating_sub(self.offset) as usize;
        let at = memchr::memchr(b'\n', bytes.get(end..)?)?;
        Some(end + at + 1)
    }

    fn block(&mut self, bytes: Vec<u8>) -> Option<RawBlock> {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        (!bytes.is_empty()).then_some(RawBlock { bytes, offset })
    }
}

fn open_at(path: &Path, position: u64) -> io::Result<Box<dyn Read + Send>> {
    let mut file = File::open(path)?;
    let mut input: Box<dyn Read + Send> = match Compression::of(path) {
        Compression::None => {
            file.seek(SeekFrom::Start(position))?;
            return Ok(Box::new(file));
        }
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(BLOCK_BYTES_MIN, file))),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
    };
    io::copy(&mut (&mut input).take(position), &mut io::sink())?;
    Ok(input)
}

/// The number of the line, from 1, that begins at `offset`: read anew, since only an error asks for it.
pub fn line_number(path: &Path, offset: u64) -> io::Result<u64> {
    let mut input = open_at(path, 0)?.take(offset);
    let mut chunk = vec![0; BLOCK_BYTES_MIN];
    let mut lines = 1;
    loop {
        let read = input.read(&mut chunk)?;
        if read == 0 {
            return Ok(lines);
        }
        lines += memchr::memchr_iter(b'\n', &chunk[..read]).count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(reader: &mut BlockReader, target: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let cut = |bytes: &[u8]| memchr::memrchr(b'\n', bytes).map(|at| at + 1);
        while let Some(block) = reader.next(target, vec![b'x'; 9], cut).unwrap() {
            lines.extend(std::str::from_utf8(&block.bytes).unwrap().lines().map(String::from));
        }
        lines
    }

    #[test]
    fn ranges_give_every_line_once_wherever_they_are_cut() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["a\n\nbcd\nef\nghijklm\nno", "a\r\n\r\nbcd\r\n", "\n\n\nx\n", "no line end", "\n"] {
            std::fs::write(file.path(), text).unwrap();
            let all: Vec<String> = text.lines().map(String::from).collect();
            let size = text.len() as u64;
            for first in 1..=size {
                for second in first + 1..=size + 1 {
                    let mut found = Vec::new();
                    for (start, end) in [(0, Some(first)), (first, Some(second)), (second, None)] {
                        let mut reader = BlockReader::open_range(file.path(), start, end).unwrap();
                        found.extend(lines(&mut reader, 4));
                    }
                    assert_eq!(found, all, "{text:?} cut at {first} and {second}");
                }
            }
        }
    }

    #[test]
    fn compressed_files_are_read_by_their_ending() {
        let folder = tempfile::tempdir().unwrap();
        let text = "first\nsecond\nthird\n";
        let gz = folder.path().join("x.json.gz");
        let mut encoder = flate2::write::GzEncoder::new(File::create(&gz).unwrap(), flate2::Compression::fast());
        io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        let zst = folder.path().join("x.json.zst");
        std::fs::write(&zst, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
        for path in [gz, zst] {
            assert_eq!(lines(&mut BlockReader::open(&path, 6, None).unwrap(), 5), ["second", "third"]);
            assert_eq!(line_number(&path, 13).unwrap(), 3);
        }
    }
}
