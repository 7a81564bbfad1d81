//! Takes rows from a table. One per shard and source; nothing in it is shared.

use std::fs::File;
use std::sync::Arc;

use throng_base::{Random, UserId};
use throng_expression::Value;

use crate::csv;
use crate::error::{DataError, Untaken};
use crate::file::{self, Format, Mark, Split};
use crate::json;
use crate::source::Source;
use crate::table::{Store, Table};

/// A row, as far as the scenario looks at it. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Arc<[Value]>);

const _: () = assert!(size_of::<Option<Row>>() <= 16);

impl Row {
    /// The field of a column as [`Source::column`] numbers them. Null when this row has none:
    /// rows of JSON lines and lists may differ.
    pub fn field(&self, column: u16) -> &Value {
        self.0.get(usize::from(column) + 1).unwrap_or(&Value::Null)
    }

    /// The whole row: a map of all its fields, or the item itself where it is no map. Null
    /// unless [`Source::use_whole`] asked for it.
    pub fn whole(&self) -> &Value {
        self.0.first().unwrap_or(&Value::Null)
    }
}

/// What is made of a row: its values are the whole row, then the columns in use.
#[derive(Debug)]
pub(crate) struct Plan {
    /// For rows whose columns are known: their names, each with its number if it is in use.
    columns: Vec<(Arc<str>, Option<u16>)>,
    /// For rows that may differ: the names in use, sorted, with their numbers.
    names: Vec<(Arc<str>, u16)>,
    whole: bool,
    /// So many of the known columns are looked at; what comes after them is not read.
    columns_read: usize,
}

impl Plan {
    pub(crate) fn new(source: &Source, columns: Option<&[String]>) -> Plan {
        let mut names: Vec<(Arc<str>, u16)> =
            source.used.iter().zip(0..).map(|(name, number)| (name.clone(), number)).collect();
        names.sort_unstable();
        let number = |name: &str| {
            let found = names.binary_search_by(|(known, _)| (**known).cmp(name));
            found.ok().map(|at| names[at].1)
        };
        let columns: Vec<(Arc<str>, Option<u16>)> = columns
            .unwrap_or_default()
            .iter()
            .map(|name| (Arc::from(&**name), number(name).filter(|_| !name.is_empty())))
            .collect();
        let columns_read = match source.whole {
            true => columns.len(),
            false => {
                columns.iter().rposition(|(_, number)| number.is_some()).map_or(0, |at| at + 1)
            }
        };
        Plan { columns, names, whole: source.whole, columns_read }
    }
}

/// Takes rows for the users of one shard.
///
/// Open, use and drop it on the thread of the shard: it has a file descriptor, and shards have
/// tables of descriptors of their own.
#[derive(Debug)]
pub struct Reader {
    table: Arc<Table>,
    supply: Supply,
    /// The values of the row that is being made.
    values: Vec<Value>,
}

#[derive(Debug)]
enum Supply {
    File(Block),
    /// The rows of a list, copied: shards that count references to the same values would wait
    /// for each other.
    List(Vec<Row>),
    Generate,
}

/// The block of rows that was read last.
#[derive(Debug)]
struct Block {
    /// None when the table holds the file in memory.
    file: Option<File>,
    mark: Option<Mark>,
    bytes: Vec<u8>,
    split: Split,
}

impl Reader {
    /// Opens the table's file, if it has one.
    pub fn open(table: &Arc<Table>) -> Result<Reader, DataError> {
        let mut values = Vec::new();
        let supply = match &table.store {
            Store::File { path, memory, .. } => {
                let file = memory.is_none().then(|| file::open(path)).transpose()?;
                let block = Block { file, mark: None, bytes: Vec::new(), split: Split::new() };
                Supply::File(block)
            }
            Store::List(items) => {
                let rows = items.iter().map(|item| {
                    fill_from_value(&table.plan, &unshared(item), &mut values);
                    seal(&mut values)
                });
                Supply::List(rows.collect())
            }
            Store::Generate(_) => Supply::Generate,
        };
        Ok(Reader { table: table.clone(), supply, values })
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The next row for this user; `random` is the user's own.
    pub fn take(&mut self, user: UserId, random: &mut Random) -> Result<Row, Untaken> {
        let number = self.table.next(user, random)?;
        Ok(self.row(number)?)
    }

    /// The row with this number, which is below the number of rows.
    pub(crate) fn row(&mut self, number: u64) -> Result<Row, DataError> {
        let plan = &self.table.plan;
        match (&mut self.supply, &self.table.store) {
            (Supply::List(rows), _) => return Ok(rows[number as usize].clone()),
            (Supply::File(block), store) => {
                block.read(store, number, |format, text| {
                    start(plan, &mut self.values);
                    match format {
                        Format::Csv { separator } => {
                            fill_from_csv(plan, text, separator, &mut self.values)
                        }
                        Format::JsonLines => fill_from_json(plan, text, &mut self.values),
                    }
                })?;
            }
            (Supply::Generate, Store::Generate(generators)) => {
                start(plan, &mut self.values);
                let fields =
                    generators.iter().map(|(generator, seed)| || generator.value(*seed, number));
                fill(plan, fields, &mut self.values);
            }
            (Supply::Generate, _) => unreachable!("a reader fits its table"),
        }
        Ok(seal(&mut self.values))
    }
}

impl Block {
    /// Finds the row and hands its text to `use_text`, which says whether it is a good row.
    fn read(
        &mut self,
        store: &Store,
        number: u64,
        use_text: impl FnOnce(Format, &str) -> bool,
    ) -> Result<(), DataError> {
        let Store::File { path, format, marks, block_rows_max, memory } = store else {
            unreachable!("only files have blocks");
        };
        let changed = || {
            let message = say!("`{}` changed while the run goes on", path.display());
            DataError::new("data-changed", message)
                .file(path)
                .help(say!("leave files of data alone until the run has ended, or use a copy"))
        };
        let mark = find(marks, number, *block_rows_max);
        if self.mark != Some(mark) {
            self.mark = None;
            self.split.clear();
            if let Some(file) = &self.file {
                self.bytes.resize(mark.length as usize, 0);
                let count = file::read_full(file, &mut self.bytes, mark.offset)
                    .map_err(|cause| DataError::unreadable(path, &cause))?;
                if count != self.bytes.len() || file::fingerprint(&self.bytes) != mark.check {
                    return Err(changed());
                }
            }
            self.mark = Some(mark);
        }
        let bytes = match memory {
            Some(memory) => &memory[mark.offset as usize..][..mark.length as usize],
            None => &self.bytes,
        };
        let row = self.split.row(bytes, (number - mark.row) as usize, *format);
        let text = row.and_then(|row| std::str::from_utf8(row).ok()).ok_or_else(changed)?;
        if use_text(*format, text) { Ok(()) } else { Err(changed()) }
    }
}

/// The block in which this row is. Blocks have `block_rows_max` rows, unless rows are long: then
/// they have fewer, and a row is in a later block.
fn find(marks: &[Mark], row: u64, block_rows_max: u64) -> Mark {
    let guess = (row / block_rows_max) as usize;
    let begins = |at: usize| marks.get(at).is_some_and(|mark| mark.row <= row);
    if begins(guess) && !begins(guess + 1) {
        return marks[guess];
    }
    marks[marks.partition_point(|mark| mark.row <= row) - 1]
}

/// Room for the values of a row, all of them Null.
fn start(plan: &Plan, values: &mut Vec<Value>) {
    values.clear();
    values.resize(1 + plan.names.len(), Value::Null);
}

fn seal(values: &mut Vec<Value>) -> Row {
    Row(values.drain(..).collect())
}

/// Puts fields, in the order of the known columns, where they belong. Fields nobody looks at are
/// not made. False when there are too few.
fn fill<F: FnOnce() -> Value>(
    plan: &Plan,
    mut fields: impl Iterator<Item = F>,
    values: &mut [Value],
) -> bool {
    let mut entries = Vec::new();
    if plan.whole {
        entries.reserve_exact(plan.columns.len());
    }
    for (name, number) in &plan.columns[..plan.columns_read] {
        let Some(field) = fields.next() else { return false };
        if number.is_none() && !plan.whole {
            continue;
        }
        let value = field();
        if let Some(number) = number {
            values[usize::from(*number) + 1] = value.clone();
        }
        if plan.whole && !name.is_empty() {
            entries.push((name.clone(), value));
        }
    }
    if plan.whole {
        values[0] = Value::Map(entries.into());
    }
    true
}

fn fill_from_csv(plan: &Plan, text: &str, separator: u8, values: &mut [Value]) -> bool {
    let fields = csv::fields(text, separator);
    fill(plan, fields.map(|field| move || Value::Text(field.text().into())), values)
}

fn fill_from_json(plan: &Plan, text: &str, values: &mut Vec<Value>) -> bool {
    if plan.whole {
        let Ok(row) = json::parse(text) else { return false };
        fill_from_value(plan, &row, values);
        return true;
    }
    let mut put = |number: u16, value| values[usize::from(number) + 1] = value;
    json::select(text, &plan.names, &mut put).is_ok()
}

fn fill_from_value(plan: &Plan, row: &Value, values: &mut Vec<Value>) {
    start(plan, values);
    if let Value::Map(entries) = row {
        for (name, value) in &**entries {
            if let Ok(at) = plan.names.binary_search_by(|(known, _)| known.cmp(name)) {
                values[usize::from(plan.names[at].1) + 1] = value.clone();
            }
        }
    }
    if plan.whole {
        values[0] = row.clone();
    }
}

/// A copy that shares nothing with the value.
fn unshared(value: &Value) -> Value {
    match value {
        Value::Text(text) => Value::Text(Arc::from(&**text)),
        Value::Bytes(bytes) => Value::Bytes(Arc::from(&**bytes)),
        Value::List(items) => Value::List(items.iter().map(unshared).collect()),
        Value::Map(entries) => Value::Map(
            entries.iter().map(|(name, value)| (Arc::from(&**name), unshared(value))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => {
            value.clone()
        }
    }
}
