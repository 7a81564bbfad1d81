//! The names of columns: from the scenario, or from the first row of a file.

use crate::csv;
use crate::error::DataError;
use crate::file::{self, Format, Limits, Walk};
use crate::source::{COLUMNS_MAX, Origin, check_names};

/// The names of the columns, if known before the run; reads at most the first row of a file. None
/// if rows can have different columns: JSON lines and lists.
pub fn columns(origin: &Origin) -> Result<Option<Vec<String>>, DataError> {
    match origin {
        Origin::Csv { path, separator, columns } => {
            let limits = Limits::default();
            let format = Format::csv(*separator)?;
            let file = file::open(path)?;
            let mut walk = Walk::new(&file, format, path, &limits);
            header(&mut walk, columns.as_deref()).map(Some)
        }
        Origin::JsonLines { path } => file::open(path).map(|_| None),
        Origin::List(_) => Ok(None),
        Origin::Generate { columns, .. } => {
            let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
            check_names(&names)?;
            Ok(Some(names))
        }
    }
}

/// A warning if a value in the first row of a CSV file starts with a space: names of columns are
/// trimmed, values are not.
pub fn leading_space(origin: &Origin) -> Result<Option<DataError>, DataError> {
    let Origin::Csv { path, separator, columns } = origin else { return Ok(None) };
    let (limits, format) = (Limits::default(), Format::csv(*separator)?);
    let file = file::open(path)?;
    let mut walk = Walk::new(&file, format, path, &limits);
    let names = header(&mut walk, columns.as_deref())?;
    let separator = walk.separator();
    let Some(row) = walk.next()? else { return Ok(None) };
    let mut fields = csv::fields(walk.text(&row)?, separator).zip(&names);
    let found = fields.find(|(field, _)| field.begins_with_space());
    Ok(found.map(|(_, name)| {
        DataError::new("data-space", say!("the value of the column `{name}` starts with a space"))
            .file(path)
            .line(row.line)
            .help(say!("spaces are part of a value: remove those after the separator"))
    }))
}

/// The names of the columns: those `given` in the scenario, or those in the first row, which is
/// then consumed.
pub(crate) fn header(
    walk: &mut Walk<'_>,
    given: Option<&[String]>,
) -> Result<Vec<String>, DataError> {
    let separator = walk.separator();
    if let Some(names) = given {
        return check_names(names).map(|()| names.to_vec());
    }
    let path = walk.path();
    let Some(row) = walk.next()? else {
        return Err(DataError::new("data-empty", say!("the file has no header line"))
            .file(path)
            .help(say!(
                "name the columns in the first line, or with `columns: [name, …]` in the scenario"
            )));
    };
    let text = walk.text(&row)?;
    if text.contains('\r') {
        return Err(DataError::new(
            "data-malformed",
            say!("the header line contains carriage returns"),
        )
        .file(path)
        .line(row.line)
        .help(say!("convert the line endings to line feeds, for example with `mac2unix`")));
    }
    let names: Vec<String> = csv::fields(text, separator)
        .take(COLUMNS_MAX + 1)
        .map(|field| field.text().trim().to_string())
        .collect();
    check_names(&names).map_err(|error| error.file(path).line(row.line))?;
    Ok(names)
}
