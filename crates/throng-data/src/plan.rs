//! Which parts of rows become values: those that the scenario uses.

use std::sync::Arc;

use throng_expression::Value;
use throng_extract::{JsonPart, JsonPath, JsonPaths};

use crate::csv;
use crate::json;
use crate::source::Source;

/// The values of a row: the whole row, followed by the columns in use.
#[derive(Debug)]
pub(crate) struct Plan {
    /// For rows with known columns: their names, each with its number if it is in use.
    columns: Vec<(Arc<str>, Option<u16>)>,
    /// For rows with different columns: the names in use, sorted, with their numbers.
    names: Vec<(Arc<str>, u16)>,
    /// The same names, by number, for JSON lines.
    paths: Option<JsonPaths>,
    whole: bool,
    /// The number of known columns that are read; later ones are skipped.
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
        let path = |name: &Arc<str>| JsonPath::from(vec![JsonPart::Name(name.to_string())]);
        let paths = JsonPaths::new(source.used.iter().map(path).collect());
        Plan { columns, names, paths, whole: source.whole, columns_read }
    }

    /// Prepares the values of a row, all Null.
    pub(crate) fn start(&self, values: &mut Vec<Value>) {
        values.clear();
        values.resize(1 + self.names.len(), Value::Null);
    }

    /// Stores fields, which are in the order of the known columns. Unused fields are not created.
    /// False if there are too few.
    pub(crate) fn fill<F: FnOnce() -> Value>(
        &self,
        mut fields: impl Iterator<Item = F>,
        values: &mut [Value],
    ) -> bool {
        let mut entries = Vec::new();
        if self.whole {
            entries.reserve_exact(self.columns.len());
        }
        for (name, number) in &self.columns[..self.columns_read] {
            let Some(field) = fields.next() else { return false };
            if number.is_none() && !self.whole {
                continue;
            }
            let value = field();
            if let Some(number) = number {
                values[usize::from(*number) + 1] = value.clone();
            }
            if self.whole && !name.is_empty() {
                entries.push((name.clone(), value));
            }
        }
        if self.whole {
            values[0] = Value::Map(entries.into());
        }
        true
    }

    pub(crate) fn fill_from_csv(&self, text: &str, separator: u8, values: &mut [Value]) -> bool {
        let fields = csv::fields(text, separator);
        self.fill(fields.map(|field| move || Value::Text(field.text().into())), values)
    }

    pub(crate) fn fill_from_json(&self, text: &str, values: &mut Vec<Value>) -> bool {
        if self.whole {
            let Ok(row) = json::parse(text) else { return false };
            self.fill_from_value(&row, values);
            return true;
        }
        let Some(paths) = &self.paths else { return false };
        let mut found = vec![None; self.names.len()];
        let is_read = paths.read(text.as_bytes(), &mut found).is_ok();
        values[1..].iter_mut().zip(found).for_each(|(to, value)| *to = value.unwrap_or_default());
        is_read
    }

    pub(crate) fn fill_from_value(&self, row: &Value, values: &mut Vec<Value>) {
        self.start(values);
        if let Value::Map(entries) = row {
            for (name, value) in &**entries {
                if let Ok(at) = self.names.binary_search_by(|(known, _)| known.cmp(name)) {
                    values[usize::from(self.names[at].1) + 1] = value.clone();
                }
            }
        }
        if self.whole {
            values[0] = row.clone();
        }
    }
}
