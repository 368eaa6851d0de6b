//! CSV text as rows of named fields.

use super::csv::split;
use super::error::{Column, Error, Result, expected};
use berth_file::error::did_you_mean;
use berth_model::Milli;
use std::borrow::Cow;

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The file is of no use without it.
    Needed,
    Read,
    /// Documented, but nothing here depends on it.
    Ignored,
}

/// The columns a kind of file may have.
pub(super) struct Schema {
    pub(super) what: &'static str,
    pub(super) columns: &'static [(&'static str, Use)],
}

/// A file whose header has been read.
pub(super) struct Table<'a> {
    file: &'a str,
    header: Vec<String>,
    /// For each column of the schema, where it is.
    places: Vec<Option<usize>>,
    rest: std::str::Lines<'a>,
    schema: &'static Schema,
    line: usize,
}

/// One line below the header.
pub(super) struct Row<'t, 'a> {
    table: &'t Table<'a>,
    pub(super) line: usize,
    fields: Vec<Cow<'a, str>>,
}

impl<'a> Table<'a> {
    pub(super) fn open(file: &'a str, text: &'a str, schema: &'static Schema) -> Result<Table<'a>> {
        // Spreadsheets put a byte order mark before the first name.
        let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
        let whole =
            |message: String| Error { file: file.into(), line: None, column: None, message };
        let Some(first) = rest.next() else {
            return Err(whole(format!("the file is empty, expected a header for {}", schema.what)));
        };
        let header = split(first)
            .map_err(|error| Error { line: Some(1), ..whole(error.to_string()) })?
            .into_iter()
            .map(|name| name.trim().to_owned())
            .collect();
        let mut table =
            Table { file, header, places: vec![None; schema.columns.len()], rest, schema, line: 1 };
        table.find_columns()?;
        Ok(table)
    }

    fn find_columns(&mut self) -> Result<()> {
        for (place, name) in self.header.iter().enumerate() {
            let names = self.schema.columns.iter().map(|(known, _)| *known);
            let Some(column) = names.clone().position(|known| known == name) else {
                let near = did_you_mean(name, names);
                let message = format!("{} have no column of this name{near}", self.schema.what);
                return Err(self.error(1, Some(place), message));
            };
            if self.places[column].is_some() {
                let message = "this column was there before".to_owned();
                return Err(self.error(1, Some(place), message));
            }
            self.places[column] = Some(place);
        }
        for ((name, used), place) in self.schema.columns.iter().zip(&self.places) {
            if *used == Use::Needed && place.is_none() {
                let message =
                    format!("there is no column `{name}`, which {} need", self.schema.what);
                return Err(self.error(1, None, message));
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.header.iter().any(|column| column == name)
    }

    fn error(&self, line: usize, place: Option<usize>, message: String) -> Error {
        let column =
            place.map(|place| Column { number: place + 1, name: self.header[place].clone() });
        Error { file: self.file.to_owned(), line: Some(line), column, message }
    }

    pub(super) fn whole(&self, message: String) -> Error {
        Error { file: self.file.to_owned(), line: None, column: None, message }
    }

    /// The next line that is not empty.
    pub(super) fn next_row(&mut self) -> Result<Option<Row<'_, 'a>>> {
        for text in self.rest.by_ref() {
            self.line += 1;
            if text.trim().is_empty() {
                continue;
            }
            let line = self.line;
            let fields = split(text).map_err(|error| self.error(line, None, error.to_string()))?;
            if fields.len() != self.header.len() {
                let message = format!(
                    "found {} fields, expected {} as in the header",
                    fields.len(),
                    self.header.len()
                );
                return Err(self.error(line, None, message));
            }
            return Ok(Some(Row { table: self, line, fields }));
        }
        Ok(None)
    }
}

impl Row<'_, '_> {
    fn place(&self, name: &str) -> Option<usize> {
        let column = self.table.schema.columns.iter().position(|(known, _)| *known == name);
        self.table.places[column.expect("only columns of the schema are asked for")]
    }

    /// What the column holds; nothing where it is empty or the file does not have it.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let field = self.fields[self.place(name)?].trim();
        (!field.is_empty()).then_some(field)
    }

    pub(super) fn wrong(&self, name: &str, wanted: &str) -> Error {
        let place = self.place(name);
        let found = self.text(name).unwrap_or("");
        self.table.error(self.line, place, expected(found, wanted))
    }

    /// Thousandths of whatever the column counts, if `fine` says they make sense.
    pub(super) fn number(
        &self,
        name: &str,
        wanted: &str,
        fine: impl Fn(i64) -> bool,
    ) -> Result<Option<i64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse::<Milli>() {
            Ok(value) if fine(value.0) => Ok(Some(value.0)),
            _ => Err(self.wrong(name, wanted)),
        }
    }

    pub(super) fn count(&self, name: &str) -> Result<Option<u32>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.wrong(name, "a whole number such as 8"))
    }
}
