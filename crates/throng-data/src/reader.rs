//! Takes rows from a table. One per shard and source; it shares no mutable state.

use std::fs::File;
use std::sync::Arc;

use throng_base::{Random, UserId};
use throng_expression::Value;

use crate::error::{DataError, Untaken};
use crate::file::{self, Format, Mark, Split};
use crate::table::{Store, Table};

/// A row with the parts that the scenario uses. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Arc<[Value]>);

const _: () = assert!(size_of::<Option<Row>>() <= 16);

impl Row {
    /// The field of a column with a number from [`Source::column`]. Null if this row does not have
    /// it: rows of JSON lines and lists can differ.
    pub fn field(&self, column: u16) -> &Value {
        self.0.get(usize::from(column) + 1).unwrap_or(&Value::Null)
    }

    /// The whole row: a map of all its fields, or the item itself if it is not a map. Null unless
    /// [`Source::use_whole`] was called.
    pub fn whole(&self) -> &Value {
        self.0.first().unwrap_or(&Value::Null)
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
    /// The values of the row that is being built.
    values: Vec<Value>,
}

#[derive(Debug)]
enum Supply {
    File(Block),
    /// The rows of a list, copied: shared reference counts would cause contention between shards.
    List(Vec<Row>),
    Generate,
}

/// The last block of rows that was read.
#[derive(Debug)]
struct Block {
    /// None if the table has the file in memory.
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
                    table.plan.fill_from_value(&unshared(item), &mut values);
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

    /// The row with this number, which must be less than the number of rows.
    pub(crate) fn row(&mut self, number: u64) -> Result<Row, DataError> {
        let plan = &self.table.plan;
        match (&mut self.supply, &self.table.store) {
            (Supply::List(rows), _) => return Ok(rows[number as usize].clone()),
            (Supply::File(block), store) => {
                block.read(store, number, |format, text| {
                    plan.start(&mut self.values);
                    match format {
                        Format::Csv { separator } => {
                            plan.fill_from_csv(text, separator, &mut self.values)
                        }
                        Format::JsonLines => plan.fill_from_json(text, &mut self.values),
                    }
                })?;
            }
            (Supply::Generate, Store::Generate(generators)) => {
                plan.start(&mut self.values);
                let fields =
                    generators.iter().map(|(generator, seed)| || generator.value(*seed, number));
                plan.fill(fields, &mut self.values);
            }
            (Supply::Generate, _) => unreachable!("a reader fits its table"),
        }
        Ok(seal(&mut self.values))
    }
}

impl Block {
    /// Finds the row and passes its text to `use_text`, which returns false for an invalid row.
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
            let message = say!("`{}` changed during the run", path.display());
            DataError::new("data-changed", message)
                .file(path)
                .help(say!("do not change a data file during a run; change a copy instead"))
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

/// The block of this row. Blocks have `block_rows_max` rows, or fewer if rows are long; then the
/// row is in a later block.
fn find(marks: &[Mark], row: u64, block_rows_max: u64) -> Mark {
    let guess = (row / block_rows_max) as usize;
    let begins = |at: usize| marks.get(at).is_some_and(|mark| mark.row <= row);
    if begins(guess) && !begins(guess + 1) {
        return marks[guess];
    }
    marks[marks.partition_point(|mark| mark.row <= row) - 1]
}

fn seal(values: &mut Vec<Value>) -> Row {
    Row(values.drain(..).collect())
}

/// A deep copy of the value.
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
