//! Points of a rate over time from a CSV file: a time and a rate in each row.

use std::path::Path;
use std::time::Duration;

use throng_base::units::{format_count, parse_duration, parse_rate};

use crate::csv;
use crate::error::DataError;
use crate::file::{self, Format, Limits, ReadAt, Walk};
use crate::moment::clock_time;

/// Maximum number of points.
pub const POINTS_MAX: usize = 1_000_000;

/// A file and its columns; the first two if they are not named.
#[derive(Clone, Copy, Debug)]
pub struct PointsFile<'a> {
    pub path: &'a Path,
    pub time: Option<&'a str>,
    pub rate: Option<&'a str>,
}

impl PointsFile<'_> {
    /// The rates per second by time since the first, in order; at least two. A first line that is
    /// not a point contains the names of the columns.
    pub fn read(&self) -> Result<Vec<(Duration, f64)>, DataError> {
        self.read_from(&file::open(self.path)?)
    }

    fn read_from(&self, file: &dyn ReadAt) -> Result<Vec<(Duration, f64)>, DataError> {
        let limits = Limits::default();
        let mut separator = b',';
        for other in [b';', b'\t'] {
            let mut walk = Walk::new(file, Format::Csv { separator }, self.path, &limits);
            let Some(row) = walk.next()? else { break };
            if csv::count(walk.text(&row)?, separator) < 2 {
                separator = other;
            }
        }
        let mut walk = Walk::new(file, Format::Csv { separator }, self.path, &limits);
        self.points(&mut walk)
    }

    fn points(&self, walk: &mut Walk<'_>) -> Result<Vec<(Duration, f64)>, DataError> {
        let mut columns = None;
        let mut shape = Shape::default();
        while let Some(row) = walk.next()? {
            let at = |error: DataError| error.file(self.path).line(row.line);
            let fields: Vec<String> = csv::fields(walk.text(&row)?, walk.separator())
                .take(crate::COLUMNS_MAX)
                .map(|field| field.text().trim().to_string())
                .collect();
            let columns = match &columns {
                Some(columns) => columns,
                None => {
                    let found = self.columns(&fields).map_err(at)?;
                    let names_them = found[0].name.is_some();
                    let found = columns.insert(found);
                    if names_them {
                        continue;
                    }
                    found
                }
            };
            shape.add(columns, &fields).map_err(at)?;
        }
        match shape.last.is_zero() {
            true => Err(too_few().file(self.path)),
            false => Ok(shape.points),
        }
    }

    /// The columns of times and rates, from the first line.
    fn columns(&self, header: &[String]) -> Result<[Column; 2], DataError> {
        if header.len() < 2 && (self.time.is_none() || self.rate.is_none()) {
            return Err(csv::miscounted(header.len(), 2, b','));
        }
        let is_named = self.time.is_some() || self.rate.is_some();
        let is_header = is_named || seconds_of(&header[0]).is_none();
        let column = |wanted: Option<&str>, index: usize| match wanted {
            None => Ok(Column { index, name: is_header.then(|| header[index].clone()) }),
            Some(name) => match header.iter().position(|own| own == name) {
                Some(index) => Ok(Column { index, name: Some(name.to_string()) }),
                None => {
                    let columns: Vec<String> =
                        header.iter().map(|name| format!("`{name}`")).collect();
                    Err(DataError::new("data-column", say!("there is no column `{name}`"))
                        .help(say!("the columns of the file are: {}", columns.join(", "))))
                }
            },
        };
        Ok([column(self.time, 0)?, column(self.rate, 1)?])
    }
}

/// The points so far.
#[derive(Default)]
struct Shape {
    points: Vec<(Duration, f64)>,
    first: f64,
    last: Duration,
    /// The last time as written.
    before: String,
}

impl Shape {
    fn add(&mut self, [time, rate]: &[Column; 2], fields: &[String]) -> Result<(), DataError> {
        let seconds = time.seconds(fields)?;
        if self.points.is_empty() {
            self.first = seconds;
        }
        let since = Duration::try_from_secs_f64(seconds - self.first).ok();
        let Some(since) = since.filter(|since| *since >= self.last) else {
            return Err(back_in_time(&fields[time.index], &self.before));
        };
        if self.points.len() >= POINTS_MAX {
            return Err(too_many());
        }
        self.points.push((since, rate.rate(fields)?));
        self.last = since;
        self.before.clone_from(&fields[time.index]);
        Ok(())
    }
}

struct Column {
    index: usize,
    /// None if the file has no names.
    name: Option<String>,
}

impl Column {
    fn field<'f>(&self, fields: &'f [String]) -> Result<&'f str, DataError> {
        let field = fields.get(self.index).map(String::as_str);
        field.ok_or_else(|| csv::miscounted(fields.len(), self.index + 1, b','))
    }

    /// Its name for messages.
    fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| (self.index + 1).to_string())
    }

    fn seconds(&self, fields: &[String]) -> Result<f64, DataError> {
        let text = self.field(fields)?;
        seconds_of(text).ok_or_else(|| {
            let message = say!("`{}` in column {} is not a time", short(text), self.title());
            let help =
                say!("write seconds (`90`), durations (`1m30s`) or clock times (`13:55:30`)");
            DataError::new("data-malformed", message).help(help)
        })
    }

    fn rate(&self, fields: &[String]) -> Result<f64, DataError> {
        let text = self.field(fields)?;
        let rate = text.parse().ok().or_else(|| parse_rate(text).ok());
        let wrong = match rate {
            Some(rate) if rate < 0.0 => say!("the rate `{}` is negative", short(text)),
            Some(rate) if f64::is_finite(rate) => return Ok(rate),
            _ => say!("`{}` in column {} is not a rate", short(text), self.title()),
        };
        let help = say!("write the number of starts per second (`500`), or a rate (`30/m`)");
        Err(DataError::new("data-malformed", wrong).help(help))
    }
}

/// Seconds, a duration, or a clock time.
fn seconds_of(text: &str) -> Option<f64> {
    let number = text.parse().ok().filter(|seconds: &f64| seconds.is_finite());
    let duration = || parse_duration(text).ok().map(|duration| duration.as_secs_f64());
    number.or_else(duration).or_else(|| clock_time(text))
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn back_in_time(time: &str, before: &str) -> DataError {
    let message = say!("the time goes backward from `{}` to `{}`", short(before), short(time));
    let help = say!("sort the rows by time; times after midnight need a date (`2026-01-31 00:05`)");
    DataError::new("data-malformed", message).help(help)
}

fn too_many() -> DataError {
    let most = format_count(POINTS_MAX as u64);
    let help = say!("remove points that are on a straight line between their neighbors");
    DataError::new("data-malformed", say!("there are more than {most} points")).help(help)
}

fn too_few() -> DataError {
    let help =
        say!("a shape needs at least two points at different times, such as `0,10` and `60,500`");
    DataError::new("data-empty", say!("the file does not have two points at different times"))
        .help(help)
}

#[cfg(test)]
mod tests;
