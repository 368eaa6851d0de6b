//! How things look on this terminal, now and here.

use berth_api::wire::At;
use berth_model::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::io::IsTerminal;

/// What a piece of text is to be taken as; colours never say it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Busy,
    Bad,
    Quiet,
    Strong,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "\x1b[32m",
            Tone::Busy => "\x1b[33m",
            Tone::Bad => "\x1b[31m",
            Tone::Quiet => "\x1b[2m",
            Tone::Strong => "\x1b[1m",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Look {
    pub now: Time,
    pub zone: TimeZone,
    pub colour: bool,
    /// Columns of the terminal; none where the text goes elsewhere, and is never cut.
    pub width: Option<usize>,
    /// More columns are asked for.
    pub wide: bool,
    /// The address of the portal, in terminals that have links.
    pub links: Option<String>,
}

/// Terminals that are known to have links (OSC 8) tell so by one of these variables.
const WITH_LINKS: [(&str, &[&str]); 7] = [
    ("TERM_PROGRAM", &["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"]),
    ("TERM", &["xterm-kitty", "foot", "alacritty", "xterm-ghostty", "contour"]),
    ("VTE_VERSION", &[]),
    ("WT_SESSION", &[]),
    ("KITTY_WINDOW_ID", &[]),
    ("KONSOLE_VERSION", &[]),
    ("WEZTERM_PANE", &[]),
];

/// Whether this terminal has links. `FORCE_HYPERLINK` says so, or with 0 that it has none.
fn has_links(terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    if let Some(forced) = variable("FORCE_HYPERLINK") {
        return forced != "0";
    }
    let is_known = |(name, values): &(&str, &[&str])| {
        variable(name).is_some_and(|value| values.is_empty() || values.contains(&value.as_str()))
    };
    // A multiplexer between may print them as they are.
    let between = variable("TMUX").is_some() || variable("STY").is_some();
    let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
    terminal && !between && !is_dumb && WITH_LINKS.iter().any(is_known)
}

/// `COLUMNS` with less is no width that anything fits in.
const LEAST_COLUMNS: usize = 20;

impl Look {
    /// As standard output is.
    pub fn here(wide: bool) -> Look {
        let terminal = std::io::stdout().is_terminal();
        let plain = |name: &str, bad: &dyn Fn(&str) -> bool| {
            std::env::var(name).is_ok_and(|value| bad(&value))
        };
        let no_colour =
            plain("NO_COLOR", &|value| !value.is_empty()) || plain("TERM", &|term| term == "dumb");
        let width = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let width = width.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let named = named.filter(|columns| *columns >= LEAST_COLUMNS);
        let links = has_links(terminal, |name| std::env::var(name).ok());
        Look {
            now: now(),
            zone: TimeZone::system(),
            colour: terminal && !no_colour,
            width: named.or(width.filter(|_| terminal)),
            wide,
            links: links.then(String::new),
        }
    }

    pub fn paint(&self, tone: Tone, text: &str) -> String {
        match self.colour && tone != Tone::Plain {
            true => format!("{}{text}\x1b[0m", tone.code()),
            false => text.to_owned(),
        }
    }

    /// Text that leads to an address.
    pub fn linked(&self, address: &str, text: &str) -> String {
        match self.links {
            Some(_) => format!("\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"),
            None => text.to_owned(),
        }
    }

    /// The page of a job in the portal, in terminals that have links.
    pub fn job_page(&self, id: &str) -> Option<String> {
        self.links.as_ref().map(|portal| job_page(portal, id))
    }

    /// The number of a job, which leads to its page in the portal.
    pub fn job_text(&self, id: &str) -> String {
        self.linked(&self.job_page(id).unwrap_or_default(), id)
    }

    /// A moment in local time, as short as it can be told: `16:40`, `Tue 04:10`, or in full.
    pub fn at(&self, at: At) -> String {
        let (Some(at), Some(now)) = (self.zoned(at.0), self.zoned(self.now)) else {
            return at.to_string();
        };
        let days = (at.timestamp().as_second() - now.timestamp().as_second()).abs() / 86_400;
        let format = match (at.date() == now.date(), days < 6) {
            (true, _) => "%H:%M",
            (false, true) => "%a %H:%M",
            (false, false) => "%Y-%m-%d %H:%M",
        };
        at.strftime(format).to_string()
    }

    /// A sentence of the server with its moments, which are in UTC, in local time.
    pub fn local(&self, text: &str) -> String {
        const DATE: usize = "2026-12-01".len();
        const LONGEST: usize = "T09:00:00.000000000Z".len();
        let (mut out, mut rest) = (String::new(), text);
        while let Some(found) = rest.match_indices('T').find_map(|(at, _)| {
            let start = at.checked_sub(DATE)?;
            let end = at + rest[at..].bytes().take(LONGEST).position(|byte| byte == b'Z')? + 1;
            Some((start, rest.get(start..end)?.parse::<At>().ok()?, end))
        }) {
            let (start, moment, end) = found;
            out.push_str(&rest[..start]);
            out.push_str(&self.at(moment));
            rest = &rest[end..];
        }
        out + rest
    }

    /// A moment in local time to the second, for logs.
    pub fn at_second(&self, at: At) -> String {
        match self.zoned(at.0) {
            Some(zoned) => zoned.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            None => at.to_string(),
        }
    }

    /// The same to the millisecond.
    pub fn at_milli(&self, at: At) -> String {
        match self.zoned(at.0) {
            Some(zoned) => zoned.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string(),
            None => at.to_string(),
        }
    }

    pub fn maybe_at(&self, at: Option<At>) -> String {
        at.map_or_else(String::new, |at| self.at(at))
    }

    /// Milliseconds since a moment, never less than none.
    pub fn since_ms(&self, at: At) -> i64 {
        (self.now - at.0).0.max(0)
    }

    fn zoned(&self, time: Time) -> Option<Zoned> {
        Timestamp::from_millisecond(time.0).ok().map(|stamp| stamp.to_zoned(self.zone.clone()))
    }
}

fn job_page(portal: &str, id: &str) -> String {
    format!("{}/jobs/{id}", portal.trim_end_matches('/'))
}

pub fn now() -> Time {
    Time(Timestamp::now().as_millisecond())
}

#[cfg(test)]
impl Look {
    /// For tests: a fixed moment in a zone of its own, on no terminal.
    pub fn fixed() -> Look {
        Look {
            now: "2026-11-15T14:00:00Z".parse().expect("a moment"),
            zone: TimeZone::fixed(jiff::tz::offset(1)),
            colour: false,
            width: None,
            wide: false,
            links: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(at: &str) -> String {
        Look::fixed().at(at.parse().unwrap())
    }

    #[test]
    fn moments_are_local_and_as_short_as_they_can_be() {
        assert_eq!(shown("2026-11-15T15:40:00Z"), "16:40");
        assert_eq!(shown("2026-11-15T23:30:00Z"), "Mon 00:30");
        assert_eq!(shown("2026-11-17T03:10:00Z"), "Tue 04:10");
        assert_eq!(shown("2026-12-01T08:00:00Z"), "2026-12-01 09:00");
    }

    #[test]
    fn links_are_for_terminals_that_are_known_to_have_them() {
        let has = |terminal, pairs: &[(&str, &str)]| {
            let found =
                |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|p| p.1.to_owned());
            has_links(terminal, found)
        };
        assert!(has(true, &[("TERM_PROGRAM", "WezTerm")]) && has(true, &[("VTE_VERSION", "7200")]));
        assert!(
            !has(true, &[("TERM", "xterm-256color")]) && !has(false, &[("VTE_VERSION", "7200")])
        );
        assert!(!has(true, &[("VTE_VERSION", "7200"), ("TMUX", "x")]));
        assert!(has(false, &[("FORCE_HYPERLINK", "1")]));
        assert!(!has(true, &[("FORCE_HYPERLINK", "0"), ("VTE_VERSION", "7200")]));
    }

    #[test]
    fn no_colour_is_used_where_none_is_wanted() {
        let mut look = Look::fixed();
        assert_eq!(look.paint(Tone::Bad, "failed"), "failed");
        look.colour = true;
        assert_eq!(look.paint(Tone::Bad, "failed"), "\x1b[31mfailed\x1b[0m");
        assert_eq!(look.paint(Tone::Plain, "x"), "x");
    }
}
