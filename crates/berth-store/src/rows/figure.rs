//! Figures of GPUs and tasks.

use crate::table::table;
use berth_model::Time;

table! {
    /// A chunk of a series. What is in it is known to whoever wrote it.
    #[derive(Debug)]
    FigureRow in "figures", 3 of the columns are its key: (&'k str, u32, Time);
    series: String = "series",
    /// How fine it is: the finest is 0.
    level: u32 = "level",
    start: Time = "start",
    /// What was measured before then is in it.
    end: Time = "end",
    /// What the row takes.
    bytes: u64 = "bytes",
    data: String = "data",
}
