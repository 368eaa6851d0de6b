//! What every command has at hand.

use crate::fail::{Failure, Result};
use crate::settings::{Flags, Places, Settings};
use crate::show::{self, Format, Look, Page, Pager};
use berth_api::Client;
use serde::Serialize;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::OnceLock;

pub struct Context {
    pub settings: Settings,
    pub format: Format,
    client: OnceLock<Client>,
    /// For what is longer than the screen.
    pager: Option<Pager>,
}

impl Context {
    pub fn new(flags: &Flags) -> Result<Context> {
        let settings = Settings::load(flags, &Places::real())?;
        let (format, client) = (settings.output.value, OnceLock::new());
        let pager = Pager::find(!flags.no_pager && format != Format::Name);
        Ok(Context { format, settings, client, pager })
    }

    pub fn client(&self) -> Result<&Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.settings.client(None)?;
        Ok(self.client.get_or_init(|| client))
    }

    pub fn look(&self) -> Look {
        let look = Look::here(self.format == Format::Wide);
        let links = look.links.as_ref().map(|_| self.settings.url.value.clone());
        Look { links, ..look }
    }

    pub fn show<T: Serialize>(&self, page: &Page<T>) -> Result<()> {
        let text = page.print(self.format, &self.look())?;
        let paged =
            self.pager.as_ref().is_some_and(|pager| pager.is_for(&text) && pager.show(&text));
        if !paged {
            show::print(&text)?;
        }
        page.remark(self.format);
        Ok(())
    }

    /// Says that something was done, for people; for programs, what came of it.
    pub fn done<T: Serialize>(
        &self,
        value: T,
        name: fn(&T) -> String,
        said: fn(&T) -> String,
    ) -> Result<()> {
        match self.format {
            Format::Json | Format::Yaml => {
                self.show(&Page::new(value, |_, _| String::new(), |_| Vec::new()))
            }
            Format::Name => show::print(&format!("{}\n", name(&value))),
            Format::Openlineage => Err(show::no_events()),
            Format::Table | Format::Wide => show::print(&format!("{}\n", said(&value))),
        }
    }

    /// The same for what leaves nothing behind, such as `Deleted team nlp`.
    pub fn gone(&self, name: &str, said: &str) -> Result<()> {
        match self.format {
            Format::Json | Format::Yaml | Format::Openlineage => Ok(()),
            Format::Name => show::print(&format!("{name}\n")),
            Format::Table | Format::Wide => show::print(&format!("{said}\n")),
        }
    }

    /// The team that was named, or the one that is set.
    pub fn team(&self, named: Option<&str>) -> Option<String> {
        let set = self.settings.team.as_ref().map(|team| team.value.clone());
        named.map(str::to_owned).or(set)
    }
}

/// Whether someone is there to answer a question.
pub fn someone_is_there() -> bool {
    std::io::stdin().is_terminal()
}

/// The text of a file, or of standard input for `-`.
pub fn read_file(path: &Path) -> Result<String> {
    let failed = |error| Failure::io(format!("reading {}", path.display()), &error);
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::usage(format!("there is no file {}", path.display()))
        }
        _ => failed(error),
    })
}
