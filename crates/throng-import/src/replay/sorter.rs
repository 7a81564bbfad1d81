//! Sorts lines by a key with limited memory: sorted pieces are written to disk and merged at the
//! end (Knuth: "The Art of Computer Programming", 5.4.1).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// The size of a piece in memory.
const PIECE_BYTES_MAX: usize = 64 << 20;

/// Equal keys keep their order.
type Keyed = (u64, u64, String);

pub(super) struct Sorter {
    folder: PathBuf,
    lines: Vec<Keyed>,
    bytes: usize,
    bytes_max: usize,
    pieces: Vec<PathBuf>,
    count: u64,
}

impl Sorter {
    pub(super) fn new(folder: &Path) -> Sorter {
        Sorter {
            folder: folder.to_path_buf(),
            lines: Vec::new(),
            bytes: 0,
            bytes_max: PIECE_BYTES_MAX,
            pieces: Vec::new(),
            count: 0,
        }
    }

    /// A line without its end.
    pub(super) fn add(&mut self, key: u64, line: String) -> io::Result<()> {
        self.bytes += line.len();
        self.lines.push((key, self.count, line));
        self.count += 1;
        if self.bytes > self.bytes_max { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.lines.sort_unstable();
        let path = self.folder.join(format!("piece-{}", self.pieces.len()));
        let mut file = BufWriter::new(File::create(&path)?);
        for (key, number, line) in self.lines.drain(..) {
            writeln!(file, "{key} {number} {line}")?;
        }
        file.flush()?;
        self.bytes = 0;
        self.pieces.push(path);
        Ok(())
    }

    /// Writes all lines in order. Returns their number.
    pub(super) fn finish(mut self, path: &Path) -> io::Result<u64> {
        self.spill()?;
        let mut pieces = Vec::new();
        let mut heap = BinaryHeap::new();
        for piece in &self.pieces {
            let mut reader = BufReader::new(File::open(piece)?);
            if let Some(first) = next(&mut reader)? {
                heap.push(Reverse((first, pieces.len())));
            }
            pieces.push(reader);
        }
        let mut out = BufWriter::new(File::create(path)?);
        while let Some(Reverse(((_, _, line), piece))) = heap.pop() {
            writeln!(out, "{line}")?;
            if let Some(following) = next(&mut pieces[piece])? {
                heap.push(Reverse((following, piece)));
            }
        }
        out.flush()?;
        self.pieces.iter().try_for_each(std::fs::remove_file)?;
        Ok(self.count)
    }
}

fn next(reader: &mut BufReader<File>) -> io::Result<Option<Keyed>> {
    let mut text = String::new();
    if reader.read_line(&mut text)? == 0 {
        return Ok(None);
    }
    let mut parts = text.trim_end_matches('\n').splitn(3, ' ');
    let torn = || io::Error::from(io::ErrorKind::InvalidData);
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (key, place) = (number().ok_or_else(torn)?, number().ok_or_else(torn)?);
    Ok(Some((key, place, parts.next().ok_or_else(torn)?.to_string())))
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    #[test]
    fn pieces_are_merged_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sorter = Sorter { bytes_max: 50, ..Sorter::new(folder.path()) };
        let mut random = Random::new(5);
        let mut expected = Vec::new();
        for number in 0..100 {
            let key = random.below(20);
            expected.push((key, number));
            sorter.add(key, format!("{key} of {number}")).expect("written");
        }
        expected.sort_unstable();
        let path = folder.path().join("out");
        assert_eq!(sorter.finish(&path).expect("merged"), 100);
        let text = std::fs::read_to_string(&path).expect("readable");
        let lines: Vec<String> =
            expected.iter().map(|(key, number)| format!("{key} of {number}")).collect();
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 1, "the pieces are gone");
    }
}
