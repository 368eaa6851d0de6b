//! How a simulation prints its report.

use super::Format;
use anyhow::{Result, bail};

/// The formats of a simulation: its reports have no names to list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    Table,
    Json,
}

impl TryFrom<Format> for ReportFormat {
    type Error = anyhow::Error;

    fn try_from(format: Format) -> Result<ReportFormat> {
        match format {
            Format::Table | Format::Wide => Ok(ReportFormat::Table),
            Format::Json => Ok(ReportFormat::Json),
            Format::Yaml | Format::Name | Format::Openlineage => {
                bail!("a simulation is shown as table or json, not as {}", format.word())
            }
        }
    }
}
