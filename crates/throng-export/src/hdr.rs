//! An HdrHistogram log (format 1.3): the response times of each second, a line for each step,
//! tagged with its name; in nanoseconds, with three significant digits.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use throng_base::Said;
use throng_metrics::Histogram;
use throng_metrics::histogram::middle;
use throng_results::RunInfo;

use crate::{Export, Second};

const DIGITS: u8 = 3;

pub(crate) struct HdrLog {
    out: BufWriter<File>,
    serializer: V2DeflateSerializer,
    begun: bool,
}

impl HdrLog {
    pub(crate) fn create(path: &str, info: &RunInfo) -> io::Result<HdrLog> {
        let mut out = BufWriter::new(File::create(path)?);
        writeln!(out, "#[throng {}: {}]", info.build.text(), one_line(&info.name))?;
        writeln!(out, "#[Histogram log format version 1.3]")?;
        out.flush()?;
        Ok(HdrLog { out, serializer: V2DeflateSerializer::new(), begun: false })
    }

    fn write(&mut self, second: &Second<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.begun, true) {
            let zero = Duration::from_nanos(second.info.time.zero_unix_ns).as_secs_f64();
            writeln!(self.out, "#[StartTime: {zero:.3} (seconds since epoch)]")?;
            writeln!(self.out, "#[BaseTime: {zero:.3} (seconds since epoch)]")?;
            let columns = "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\"";
            writeln!(self.out, "{columns},\"Interval_Compressed_Histogram\"")?;
        }
        let timed = second.figures.steps.iter().filter(|row| !row.latency.is_empty());
        for row in timed {
            let name = second.info.step_name(row.step);
            let tag: String =
                name.chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect();
            let mut packed = Vec::new();
            let made = hdr(&row.latency).map_err(io::Error::other)?;
            self.serializer.serialize(&made, &mut packed).map_err(io::Error::other)?;
            let (at, max) = (second.figures.second, row.latency.max() as f64 / 1e6);
            let text = STANDARD.encode(packed);
            writeln!(self.out, "Tag={tag},{at}.000,1.000,{max:.3},{text}")?;
        }
        self.out.flush()
    }
}

impl Export for HdrLog {
    fn second(&mut self, second: &Second<'_>) -> Result<(), Said> {
        self.write(second).map_err(|error| Said::of_error(&error))
    }
}

/// The midpoints of its buckets, except for the smallest and the largest value, which are exact.
fn hdr(histogram: &Histogram) -> Result<Hdr<u64>, String> {
    let max = histogram.max().max(2);
    let mut hdr = Hdr::new_with_bounds(1, max, DIGITS).map_err(|error| error.to_string())?;
    for (index, count) in histogram.buckets() {
        let value = middle(index).clamp(histogram.min().max(1), max);
        hdr.record_n(value, count).map_err(|error| error.to_string())?;
    }
    Ok(hdr)
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
