//! What commands print: tables for people, JSON, YAML or bare names for programs.

mod look;
mod pager;
mod report_format;
mod table;
pub mod words;

pub use look::{Look, Tone, now};
pub use pager::Pager;
pub use report_format::ReportFormat;
pub use table::{Cell, Table};

use crate::fail::{Failure, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// How an answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Aligned columns
    #[default]
    Table,
    /// Aligned columns, and more of them
    Wide,
    Json,
    Yaml,
    /// Only names or numbers, one per line
    Name,
    /// Events of OpenLineage, for `berth lineage`
    #[value(hide = true)]
    Openlineage,
}

impl Format {
    pub fn word(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Wide => "wide",
            Format::Json => "json",
            Format::Yaml => "yaml",
            Format::Name => "name",
            Format::Openlineage => "openlineage",
        }
    }

    /// A program reads it, so nothing else may be mixed in.
    pub fn is_for_programs(self) -> bool {
        matches!(self, Format::Json | Format::Yaml | Format::Name | Format::Openlineage)
    }
}

/// An answer with the ways to show it.
pub struct Page<T> {
    pub value: T,
    text: fn(&T, &Look) -> String,
    names: fn(&T) -> Vec<String>,
    remarks: fn(&T) -> Vec<String>,
}

impl<T: Serialize> Page<T> {
    pub fn new(value: T, text: fn(&T, &Look) -> String, names: fn(&T) -> Vec<String>) -> Page<T> {
        Page { value, text, names, remarks: |_| Vec::new() }
    }

    /// What is not in the columns goes beside them, so that pipes carry rows only.
    pub fn remarks(self, remarks: fn(&T) -> Vec<String>) -> Page<T> {
        Page { remarks, ..self }
    }

    /// Tells people what is to be said beside the answer.
    pub fn remark(&self, format: Format) {
        if !format.is_for_programs() {
            (self.remarks)(&self.value).iter().for_each(|remark| note(remark));
        }
    }

    /// What is printed, with the end of its last line.
    pub fn print(&self, format: Format, look: &Look) -> Result<String> {
        let mut text = match format {
            Format::Table | Format::Wide => (self.text)(&self.value, look),
            Format::Json => json(&self.value)?,
            Format::Yaml => yaml(&self.value)?,
            Format::Name => (self.names)(&self.value).join("\n"),
            Format::Openlineage => return Err(no_events()),
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text)
    }
}

/// Only `berth lineage` can print events of OpenLineage.
pub fn no_events() -> Failure {
    Failure::usage("`-o openlineage` is a format of `berth lineage` alone")
        .next("Use -o json, yaml, name, wide or table.")
}

pub fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| {
        Failure::internal(format!("the answer cannot be written as JSON: {error}"))
    })
}

fn yaml<T: Serialize>(value: &T) -> Result<String> {
    serde_saphyr::to_string(value).map_err(|error| {
        Failure::internal(format!("the answer cannot be written as YAML: {error}"))
    })
}

/// Prints to standard output. A reader that has gone away, such as `head`, is no failure.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::io("writing to standard output", &error)),
        Ok(()) => Ok(()),
    }
}

/// Tells something beside the answer. There is nobody to tell when this fails.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
