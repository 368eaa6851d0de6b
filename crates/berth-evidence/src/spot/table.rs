//! All cases of one set of windows.

use super::Case;
use comfy_table::{Table, presets::NOTHING};

pub fn table(title: &str, cases: &[Case]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        "overhead h",
        "deadline h",
        "rule",
        "share of on demand",
        "saved %",
        "gap to the bound",
        "missed",
        "restarts",
    ]);
    for case in cases {
        let share = |cost: i128| cost as f64 / case.on_demand as f64;
        let overhead = format!("{:.2}", case.overhead_milli_h as f64 / 1_000.0);
        let deadline = case.deadline_h.to_string();
        let bound = share(case.bound);
        for (name, sum) in &case.rules {
            let cost = share(sum.cost);
            table.add_row([
                overhead.clone(),
                deadline.clone(),
                (*name).to_owned(),
                format!("{cost:.4}"),
                format!("{:.1}", (1.0 - cost) * 100.0),
                format!("{:.4}", cost - bound),
                format!("{} of {}", sum.missed, sum.windows),
                format!("{:.1}", sum.restarts as f64 / sum.windows.max(1) as f64),
            ]);
        }
        let saved = format!("{:.1}", (1.0 - bound) * 100.0);
        let none = String::new;
        let row = ["lower bound".to_owned(), format!("{bound:.4}"), saved, none(), none(), none()];
        table.add_row([overhead, deadline].into_iter().chain(row));
    }
    format!("{title}\n{table}\n")
}
