//! Aligned columns without lines around them: people read them, and so do `awk` and `cut`.

use super::{Look, Tone};

/// One field of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
    /// Where it leads, in terminals that have links.
    link: Option<String>,
}

impl Cell {
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { tone, ..Cell::from(text.into()) }
    }

    /// The number of a job, which leads to its page in the portal.
    pub fn of_job(look: &Look, id: &str) -> Cell {
        Cell::linked(id, look.job_page(id))
    }

    pub fn linked(text: impl Into<String>, link: Option<String>) -> Cell {
        Cell { link, ..Cell::from(text.into()) }
    }
}

impl From<String> for Cell {
    /// Nobody's job name or remark may move the cursor of another's terminal.
    fn from(text: String) -> Cell {
        let text = match text.chars().any(char::is_control) {
            true => text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
            false => text,
        };
        Cell { text, tone: Tone::Plain, link: None }
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
    /// On a terminal the last column goes on in the next line instead of being cut.
    wrap: bool,
}

const GAP: &str = "  ";

impl Table {
    pub fn new(titles: &[&'static str]) -> Table {
        let right = titles.iter().map(|title| title.starts_with('>')).collect();
        let titles = titles.iter().map(|title| title.trim_start_matches('>')).collect();
        Table { titles, right, rows: Vec::new(), indent: "", wrap: false }
    }

    pub fn wrapped(self) -> Table {
        Table { wrap: true, ..self }
    }

    /// Columns of a terminal that it takes if nothing is cut.
    pub fn natural_width(&self) -> usize {
        let widths = self.widths();
        self.indent.len() + widths.iter().sum::<usize>() + GAP.len() * (widths.len() - 1)
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
            let shown = if cell.text.is_empty() { "-".to_owned() } else { cell.text.clone() };
            let pad = " ".repeat(width - shown.chars().count().min(*width));
            let (before, after) = match (self.right[index], index == last) {
                (true, _) => (pad.as_str(), ""),
                (false, true) => ("", ""),
                (false, false) => ("", pad.as_str()),
            };
            let gap = if index == 0 { "" } else { GAP };
            let room = left.saturating_sub(gap.len() + before.len());
            if self.wrap && index == last && !self.right[index] && room >= LEAST_ROOM {
                let column = line_width(look, left) + gap.len();
                line.push_str(gap);
                line.push_str(&wrapped(&shown, room, column, &cell, look));
                break;
            }
            let shown = cut(shown, room);
            left = room.saturating_sub(shown.chars().count() + after.len());
            line.push_str(gap);
            line.push_str(before);
            line.push_str(&painted(&shown, &cell, look));
            line.push_str(after);
            if left == 0 {
                break;
            }
        }
        format!("{}\n", line.trim_end())
    }
}

/// With less room a wrapped text is a column of single words.
const LEAST_ROOM: usize = 16;

fn painted(text: &str, cell: &Cell, look: &Look) -> String {
    let painted = look.paint(cell.tone, text);
    match &cell.link {
        Some(link) => look.linked(link, &painted),
        None => painted,
    }
}

/// Columns that are taken already; none is counted where nothing is cut.
fn line_width(look: &Look, left: usize) -> usize {
    look.width.map_or(0, |width| width - left)
}

/// The words of a text in lines of at most `room`, each below the first.
fn wrapped(text: &str, room: usize, column: usize, cell: &Cell, look: &Look) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + length <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word.to_owned(), room)),
        }
    }
    let lines: Vec<String> = lines.iter().map(|line| painted(line, cell, look)).collect();
    lines.join(&format!("\n{}", " ".repeat(column)))
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
    fn the_last_column_goes_on_below_where_it_is_wrapped() {
        let look = Look { width: Some(48), ..Look::fixed() };
        let mut table = table().wrapped();
        table.row(vec!["1".into(), "a".into(), "$1.00".into(), "needs 4 nodes x 8 H100".into()]);
        let expect = "\
ID    NAME            COST  REASON
17    bert           $1.20  waits for 4 GPUs
4711  llama-70b  $1,000.00  -
1     a              $1.00  needs 4 nodes x 8
                            H100
";
        assert_eq!(table.text(&look), expect);
        let open = table.text(&Look::fixed());
        assert!(open.ends_with("needs 4 nodes x 8 H100\n"), "{open}");
    }

    #[test]
    fn a_cell_leads_somewhere_only_in_a_terminal_with_links() {
        let mut table = Table::new(&["ID"]);
        table.row(vec![Cell::of_job(&Look::fixed(), "17")]);
        assert_eq!(table.text(&Look::fixed()), "ID\n17\n");
        let look = Look { links: Some("http://berth:7117".into()), ..Look::fixed() };
        let mut table = Table::new(&["ID", "NAME"]);
        table.row(vec![Cell::of_job(&look, "17"), "a".into()]);
        let link = "\x1b]8;;http://berth:7117/jobs/17\x1b\\17\x1b]8;;\x1b\\";
        assert_eq!(table.text(&look), format!("ID  NAME\n{link}  a\n"));
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
