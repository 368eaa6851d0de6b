//! Reads the few columns that are needed of a trace, and says where a file is not as expected.

use anyhow::{Result, anyhow, bail};
use berth_sim::trace::csv::split;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A whole file in memory, its first line taken as the names of its columns.
pub struct Table {
    path: PathBuf,
    text: String,
    columns: Vec<String>,
}

/// One line of it.
pub struct Row<'t> {
    table: &'t Table,
    line: usize,
    fields: Vec<Cow<'t, str>>,
}

impl Table {
    /// Reads `name.csv` or `name.csv.gz` of a folder.
    pub fn open(folder: &Path, name: &str) -> Result<Table> {
        let text = crate::traces::read(folder, name)?;
        let path = folder.join(format!("{name}.csv"));
        Table::parse(path, text)
    }

    fn parse(path: PathBuf, text: String) -> Result<Table> {
        let Some(first) = text.lines().next() else {
            bail!("{}: there is no line with the names of columns", path.display())
        };
        let columns =
            split(first).map_err(|error| anyhow!("{}: line 1: {error}", path.display()))?;
        let columns = columns.into_iter().map(Cow::into_owned).collect();
        Ok(Table { path, text, columns })
    }

    pub fn rows(&self) -> Result<Vec<Row<'_>>> {
        let lines = self.text.lines().enumerate().skip(1).filter(|(_, text)| !text.is_empty());
        let row = |(at, text)| {
            let path = self.path.display();
            let fields =
                split(text).map_err(|error| anyhow!("{path}: line {}: {error}", at + 1))?;
            Ok(Row { table: self, line: at + 1, fields })
        };
        lines.map(row).collect()
    }
}

impl Row<'_> {
    pub fn text(&self, column: &str) -> Result<&str> {
        let at = self.table.columns.iter().position(|name| name == column);
        let field = at.and_then(|at| self.fields.get(at));
        field
            .map(AsRef::as_ref)
            .ok_or_else(|| self.wrong(column, "a field, but the line has none there"))
    }

    /// A decimal number with at most three places, in thousandths; 0 where the field is empty.
    pub fn milli(&self, column: &str) -> Result<i64> {
        let text = self.text(column)?;
        let expected = || self.wrong(column, &format!("a number, but there is {text:?}"));
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        if text.is_empty() {
            return Ok(0);
        }
        let whole: i64 =
            if whole.is_empty() { 0 } else { whole.parse().map_err(|_| expected())? };
        let digits = format!("{part:0<3}");
        let part: i64 = digits.get(..3).and_then(|d| d.parse().ok()).ok_or_else(expected)?;
        Ok(whole * 1_000 + part)
    }

    pub fn integer(&self, column: &str) -> Result<i64> {
        let text = self.text(column)?;
        let wrong = || self.wrong(column, &format!("a whole number, but there is {text:?}"));
        text.parse().map_err(|_| wrong())
    }

    pub fn wrong(&self, column: &str, expected: &str) -> anyhow::Error {
        let path = self.table.path.display();
        anyhow!("{path}: line {}, column {column}: expected {expected}", self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        Table::parse(PathBuf::from("pods.csv"), text.to_owned()).expect("there is a first line")
    }

    #[test]
    fn fields_are_found_by_the_name_of_their_column() {
        let table = table("a,b,c\n1,0.46,x\n2,12,\n");
        let rows = table.rows().expect("no quotes");
        assert_eq!(rows[0].milli("b").expect("a number"), 460);
        assert_eq!(rows[1].milli("b").expect("a number"), 12_000);
        assert_eq!(rows[1].text("c").expect("a field"), "");
        assert_eq!(rows[1].integer("a").expect("a number"), 2);
    }

    #[test]
    fn a_field_that_is_no_number_is_named_with_file_line_and_column() {
        let table = table("a,b\n1,2\n3,x\n");
        let rows = table.rows().expect("no quotes");
        let last = rows.last().expect("there are rows");
        let error = last.milli("b").expect_err("x is no number").to_string();
        assert_eq!(error, "pods.csv: line 3, column b: expected a number, but there is \"x\"");
        let error = last.text("d").expect_err("there is no such column").to_string();
        assert!(error.contains("line 3, column d"), "{error}");
    }
}
