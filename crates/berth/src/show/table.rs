//! Aligned columns without lines around them: people read them, and so do `awk` and `cut`.

use super::{Look, Tone};

/// One field of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { tone, ..Cell::from(text.into()) }
    }
}

impl From<String> for Cell {
    /// Nobody's job name or remark may move the cursor of another's terminal.
    fn from(text: String) -> Cell {
        let text = match text.chars().any(char::is_control) {
            true => text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
            false => text,
        };
        Cell { text, tone: Tone::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_owned())
    }
}

macro_rules! cells_of_numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for Cell {
            fn from(number: $number) -> Cell {
                Cell::from(number.to_string())
            }
        })*
    };
}

cells_of_numbers!(u32, u64, i32, i64, usize);

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or_else(|| Cell::from(""), Into::into)
    }
}

/// Columns whose titles begin with `>` stand to the right.
#[derive(Debug)]
pub struct Table {
    titles: Vec<&'static str>,
    right: Vec<bool>,
    rows: Vec<Vec<Cell>>,
    /// Before each line.
    indent: &'static str,
}

const GAP: &str = "  ";

impl Table {
    pub fn new(titles: &[&'static str]) -> Table {
        let right = titles.iter().map(|title| title.starts_with('>')).collect();
        let titles = titles.iter().map(|title| title.trim_start_matches('>')).collect();
        Table { titles, right, rows: Vec::new(), indent: "" }
    }

    /// For a table below a title.
    pub fn indented(self) -> Table {
        Table { indent: GAP, ..self }
    }

    /// A row; cells that are left out at the end are empty.
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert!(cells.len() <= self.titles.len(), "a row has as many cells as the table columns");
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows under their titles, or what there is to say about there being none.
    pub fn or(self, look: &Look, nothing: &str) -> String {
        match self.is_empty() {
            true => format!("{nothing}\n"),
            false => self.text(look),
        }
    }

    pub fn text(&self, look: &Look) -> String {
        let head: Vec<Cell> =
            self.titles.iter().map(|title| Cell::toned(*title, Tone::Strong)).collect();
        let widths = self.widths();
        let mut out = self.line(&head, &widths, look);
        for row in &self.rows {
            out.push_str(&self.line(row, &widths, look));
        }
        out
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.titles.iter().map(|title| title.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        widths
    }

    /// On a terminal a line that is too long is cut, so that rows stay rows.
    fn line(&self, row: &[Cell], widths: &[usize], look: &Look) -> String {
        let mut line = self.indent.to_owned();
        let mut left = look.width.unwrap_or(usize::MAX).saturating_sub(line.len());
        let last = self.titles.len() - 1;
        for (index, width) in widths.iter().enumerate() {
            let cell = row.get(index).cloned().unwrap_or_else(|| Cell::from(""));
            let shown = if cell.text.is_empty() { "-".to_owned() } else { cell.text };
            let pad = " ".repeat(width - shown.chars().count().min(*width));
            let (before, after) = match (self.right[index], index == last) {
                (true, _) => (pad.as_str(), ""),
                (false, true) => ("", ""),
                (false, false) => ("", pad.as_str()),
            };
            let gap = if index == 0 { "" } else { GAP };
            let room = left.saturating_sub(gap.len() + before.len());
            let shown = cut(shown, room);
            left = room.saturating_sub(shown.chars().count() + after.len());
            line.push_str(gap);
            line.push_str(before);
            line.push_str(&look.paint(cell.tone, &shown));
            line.push_str(after);
            if left == 0 {
                break;
            }
        }
        format!("{}\n", line.trim_end())
    }
}

fn cut(text: String, room: usize) -> String {
    match text.chars().count() > room {
        true => text.chars().take(room.saturating_sub(1)).chain(['…']).take(room).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["ID", "NAME", ">COST", "REASON"]);
        table.row(vec!["17".into(), "bert".into(), "$1.20".into(), "waits for 4 GPUs".into()]);
        table.row(vec!["4711".into(), "llama-70b".into(), "$1,000.00".into(), "".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_empty_cells_have_a_dash() {
        let expect = "\
ID    NAME            COST  REASON
17    bert           $1.20  waits for 4 GPUs
4711  llama-70b  $1,000.00  -
";
        assert_eq!(table().text(&Look::fixed()), expect);
    }

    #[test]
    fn lines_are_cut_on_a_terminal_only() {
        let look = Look { width: Some(32), ..Look::fixed() };
        let lines: Vec<String> = table().text(&look).lines().map(str::to_owned).collect();
        assert_eq!(lines[1], "17    bert           $1.20  wai…");
        assert!(lines.iter().all(|line| line.chars().count() <= 32), "{lines:?}");
    }

    #[test]
    fn a_cell_cannot_move_the_cursor() {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(vec!["a\x1b[2Jb\nc".into(), Cell::toned("failed", Tone::Bad)]);
        let look = Look { colour: true, ..Look::fixed() };
        let text = table.text(&look);
        assert!(text.contains("a [2Jb c"), "{text:?}");
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("\x1b[31mfailed\x1b[0m"));
    }

    #[test]
    fn a_table_without_rows_says_something_else() {
        assert_eq!(Table::new(&["ID"]).or(&Look::fixed(), "No jobs."), "No jobs.\n");
    }
}
