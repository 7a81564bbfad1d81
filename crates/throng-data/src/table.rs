//! A source opened for a run: checks, counts and indexes its rows, and selects the next one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use throng_base::diagnostic::did_you_mean;
use throng_base::{Random, Share, UserId};
use throng_expression::Value;

use crate::csv;
use crate::error::{DataError, Untaken};
use crate::file::{self, Format, Limits, Mark, ReadAt, Walk};
use crate::generate::Generator;
use crate::header::header;
use crate::json;
use crate::plan::Plan;
use crate::shuffle::Permutation;
use crate::source::{AtEnd, Origin, Source, Take, check_names};

/// A source opened for a run; one per process, shared by its shards. It has no open file: shards
/// have their own descriptors.
///
/// Its counter is the only mutable state that shards share. With separate counters, users of one
/// shard would never see the rows of another.
#[derive(Debug)]
pub struct Table {
    name: String,
    take: Take,
    at_end: AtEnd,
    /// This machine's share of the positions `0, 1, 2, …` in the order of the rows: machines share
    /// a source without coordination.
    share: Share,
    seed: u64,
    rows: Option<u64>,
    order: Option<Permutation>,
    taken: Counter,
    pub(crate) plan: Plan,
    pub(crate) store: Store,
}

/// On its own cache line, so that counting does not slow down readers of the table.
#[derive(Debug)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// Where the rows are.
#[derive(Debug)]
pub(crate) enum Store {
    File {
        path: PathBuf,
        format: Format,
        marks: Vec<Mark>,
        block_rows_max: u64,
        memory: Option<Vec<u8>>,
    },
    List(Arc<[Value]>),
    /// The generators with the seeds of their columns.
    Generate(Vec<(Generator, u64)>),
}

impl Table {
    /// Reads the whole source once, checks each row and counts them. `seed` is that of the run.
    pub fn open(source: &Source, seed: u64, share: Share) -> Result<Arc<Table>, DataError> {
        Table::open_within(source, seed, share, &Limits::default())
    }

    pub(crate) fn open_within(
        source: &Source,
        seed: u64,
        share: Share,
        limits: &Limits,
    ) -> Result<Arc<Table>, DataError> {
        let seed = Random::for_owner(seed, hash(&source.name)).next_u64();
        let (store, columns, rows) = match &source.origin {
            Origin::Csv { path, separator, columns } => {
                let format = Format::csv(*separator)?;
                let (store, names, rows) = open_file(path, format, columns.as_deref(), limits)?;
                (store, Some(names), Some(rows))
            }
            Origin::JsonLines { path } => {
                let (store, _, rows) = open_file(path, Format::JsonLines, None, limits)?;
                (store, None, Some(rows))
            }
            Origin::List(items) => (Store::List(items.clone()), None, Some(items.len() as u64)),
            Origin::Generate { columns, rows } => {
                let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
                check_names(&names)?;
                let longest = columns.iter().filter_map(|(_, generator)| generator.rows()).max();
                let seeded = columns.iter().map(|(name, generator)| {
                    (generator.clone(), Random::for_owner(seed, hash(name)).next_u64())
                });
                (Store::Generate(seeded.collect()), Some(names), rows.or(longest))
            }
        };
        if let Some(names) = &columns {
            check_used(source, names)?;
        }
        if rows == Some(0) {
            return Err(empty(source));
        }
        let order = match (source.take, rows) {
            (Take::Shuffle, Some(rows)) => Some(Permutation::new(rows)),
            (Take::Shuffle, None) => return Err(endless(source)),
            _ => None,
        };
        let plan = Plan::new(source, columns.as_deref());
        Ok(Arc::new(Table {
            name: source.name.clone(),
            take: source.take,
            at_end: source.at_end,
            share,
            seed,
            rows,
            order,
            taken: Counter(AtomicU64::new(0)),
            plan,
            store,
        }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that this number of users each find their own row, if the source guarantees that and
    /// the run would otherwise end. Known before anything is sent.
    pub fn suffices(&self, users: u64) -> Result<(), DataError> {
        match self.users_max() {
            Some(rows) if rows < users => Err(DataError::new(
                "data-too-few",
                say!(
                    "`{}` has {rows} rows for {users} users, but each user needs its own row",
                    self.name
                ),
            )
            .help(say!("add rows, use fewer users, or let users share rows: `at_end: wrap`"))),
            _ => Ok(()),
        }
    }

    /// The number of users that find their own row, if the source guarantees that.
    pub fn users_max(&self) -> Option<u64> {
        let ends = matches!(self.at_end, AtEnd::Unsaid | AtEnd::Stop);
        let promised = self.take == Take::PerUser && ends;
        self.rows.filter(|_| promised)
    }

    /// The number of different rows, on all machines together; None if infinite.
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// The number of the row that this user gets now.
    pub(crate) fn next(&self, user: UserId, random: &mut Random) -> Result<u64, Untaken> {
        match self.take {
            Take::Unique => self.until_end(self.position()),
            Take::PerUser => self.until_end(user.0.saturating_sub(1)),
            Take::Circular => {
                let position = self.position();
                Ok(self.rows.map_or(position, |rows| position % rows))
            }
            Take::Random => Ok(match self.rows {
                Some(rows) => random.below(rows),
                None => random.next_u64(),
            }),
            Take::Shuffle => {
                let position = self.position();
                Ok(self.order.map_or(position, |order| {
                    let (round, place) = (position / order.size(), position % order.size());
                    order.at(Random::for_owner(self.seed, round).next_u64(), place)
                }))
            }
        }
    }

    /// The next position of this machine in the order of the rows.
    fn position(&self) -> u64 {
        self.share.global(self.taken.0.fetch_add(1, Ordering::Relaxed))
    }

    fn until_end(&self, position: u64) -> Result<u64, Untaken> {
        match (self.rows, self.at_end) {
            (Some(rows), AtEnd::Wrap) => Ok(position % rows),
            (Some(rows), AtEnd::Unsaid) if position >= rows => Err(Untaken::RunEndsShort),
            (Some(rows), AtEnd::Stop) if position >= rows => Err(Untaken::RunEnds),
            (Some(rows), AtEnd::Error) if position >= rows => Err(Untaken::StepFails),
            _ => Ok(position),
        }
    }
}

fn open_file(
    path: &Path,
    format: Format,
    given: Option<&[String]>,
    limits: &Limits,
) -> Result<(Store, Vec<String>, u64), DataError> {
    let file = file::open(path)?;
    let unreadable = |cause| DataError::unreadable(path, &cause);
    let length = file.metadata().map_err(unreadable)?.len();
    let mut memory = None;
    if length <= limits.memory_bytes_max as u64 {
        let mut bytes = vec![0; length as usize];
        let count = file::read_full(&file, &mut bytes, 0).map_err(unreadable)?;
        bytes.truncate(count);
        memory = Some(bytes);
    }
    let bytes: &dyn ReadAt = memory.as_ref().map_or(&file, |bytes| bytes);
    let mut walk = Walk::new(bytes, format, path, limits);
    let names = match format {
        Format::Csv { separator } => check_csv(&mut walk, given, separator)?,
        Format::JsonLines => check_json_lines(&mut walk)?,
    };
    let (rows, marks) = walk.finish();
    let path = path.to_path_buf();
    let store = Store::File { path, format, marks, block_rows_max: limits.block_rows_max, memory };
    Ok((store, names, rows))
}

fn check_csv(
    walk: &mut Walk<'_>,
    given: Option<&[String]>,
    separator: u8,
) -> Result<Vec<String>, DataError> {
    let names = header(walk, given)?;
    if given.is_none() {
        walk.skip();
    }
    while let Some(row) = walk.next()? {
        let count = csv::count(walk.text(&row)?, separator);
        if count != names.len() {
            let error = csv::miscounted(count, names.len(), separator);
            return Err(error.file(walk.path()).line(row.line));
        }
    }
    Ok(names)
}

fn check_json_lines(walk: &mut Walk<'_>) -> Result<Vec<String>, DataError> {
    while let Some(row) = walk.next()? {
        json::check(walk.text(&row)?).map_err(|mistake| {
            let message =
                say!("the line is not valid JSON: {} in column {}", mistake.what, mistake.column);
            DataError::new("data-malformed", message)
                .file(walk.path())
                .line(row.line)
                .help(say!("each line must be one complete JSON value, such as `{{\"id\": 1}}`"))
        })?;
    }
    Ok(Vec::new())
}

/// Checks that each used column exists.
fn check_used(source: &Source, names: &[String]) -> Result<(), DataError> {
    let Some(missing) = source.used.iter().find(|used| !names.iter().any(|name| *name == ***used))
    else {
        return Ok(());
    };
    let message = say!("`{}` has no column `{missing}`", source.name);
    let mut error = DataError::new("data-column", message);
    if let Origin::Csv { path, columns, .. } = &source.origin {
        error = error.file(path);
        if columns.is_none() {
            error = error.line(1);
        }
    }
    let header = names.first().map_or("", |name| name);
    let other = [';', '\t', '|', ','].into_iter().find(|other| header.contains(*other));
    let known = names.iter().map(String::as_str).filter(|name| !name.is_empty());
    let help = match (did_you_mean(missing, known), other) {
        (_, Some(other)) if names.len() == 1 => {
            say!(
                "write `separator: \"{}\"` if this character separates the columns",
                other.escape_default()
            )
        }
        (Some(near), _) => say!("did you mean `{near}`?"),
        _ => say!("the columns are {}", listed(names)),
    };
    Err(error.help(help))
}

/// The first names of a list, in backticks.
fn listed(names: &[String]) -> String {
    const SHOWN_MAX: usize = 20;
    let shown: Vec<String> = names.iter().take(SHOWN_MAX).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > SHOWN_MAX { ", …" } else { "" };
    shown.join(", ") + more
}

fn empty(source: &Source) -> DataError {
    let error = DataError::new("data-empty", say!("`{}` has no rows", source.name));
    match &source.origin {
        Origin::Csv { path, columns: None, .. } => error.file(path).help(say!(
            "add rows after the header line; if the first line is a row, write `columns: [name, \
             …]`"
        )),
        Origin::Csv { path, .. } | Origin::JsonLines { path } => {
            error.file(path).help(say!("add rows, one per line"))
        }
        Origin::List(_) => error.help(say!("write at least one item")),
        Origin::Generate { .. } => error.help(say!("`rows` must be at least 1")),
    }
}

fn endless(source: &Source) -> DataError {
    let message = say!("`{}` has unlimited rows, which cannot be shuffled", source.name);
    DataError::new("data-generator", message).help(say!("set the number of rows: `rows: 10000`"))
}

/// FNV-1a, for the seeds of names: the same on every machine and in every version.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
