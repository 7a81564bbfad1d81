//! Inflate, for the codings built on it.

use flate2::{Decompress, FlushDecompress, Status};

/// The bytes are not valid in this coding.
#[derive(Debug)]
pub(super) struct Fault;

/// How many bytes were read and how many were written.
pub(super) type Step = Result<(usize, usize), Fault>;

/// Inflates until the input is used up, the output is full, or the data ends (true).
pub(super) fn inflate(
    inflater: &mut Decompress,
    input: &[u8],
    output: &mut [u8],
) -> Result<(usize, usize, bool), Fault> {
    let (before_in, before_out) = (inflater.total_in(), inflater.total_out());
    let status =
        inflater.decompress(input, output, FlushDecompress::None).map_err(|_error| Fault)?;
    let consumed = (inflater.total_in() - before_in) as usize;
    let produced = (inflater.total_out() - before_out) as usize;
    Ok((consumed, produced, status == Status::StreamEnd))
}
