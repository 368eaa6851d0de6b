//! How often figures are taken, and how long they are kept.

use crate::fail::{Failure, Result};
use crate::kept::{entry, keep, keep_size};
use berth_api::wire::ConfigEntry;
use berth_model::Span;
use berth_server::{FigureOptions, KeepFigures};
use clap::Args;

/// By how fine they are.
const KEEP_FIGURES: &str = "2d";
const KEEP_FIGURES_MINUTES: &str = "30d";
const KEEP_FIGURES_HOURS: &str = "730d";
const KEEP_FIGURES_SIZE: &str = "1GiB";

/// How long figures are kept.
#[derive(Args, Debug)]
pub struct KeepFigureFlags {
    /// How long to keep figures as measured, such as 2d
    #[arg(long, value_name = "TIME", default_value = KEEP_FIGURES, env = "BERTH_KEEP_FIGURES")]
    pub keep_figures: String,
    /// How long to keep figures per minute, such as 30d
    #[arg(
        long, value_name = "TIME", default_value = KEEP_FIGURES_MINUTES,
        env = "BERTH_KEEP_FIGURES_MINUTES"
    )]
    pub keep_figures_minutes: String,
    /// How long to keep figures per hour, such as 730d
    #[arg(
        long, value_name = "TIME", default_value = KEEP_FIGURES_HOURS,
        env = "BERTH_KEEP_FIGURES_HOURS"
    )]
    pub keep_figures_hours: String,
    /// How much space figures may take, such as 1GiB; the finest and oldest are deleted first. `all`
    /// sets no limit
    #[arg(
        long, value_name = "SIZE", default_value = KEEP_FIGURES_SIZE,
        env = "BERTH_KEEP_FIGURES_SIZE"
    )]
    pub keep_figures_size: String,
}

impl KeepFigureFlags {
    pub fn options(&self, every: &str) -> Result<FigureOptions> {
        let found = every;
        let every = every.parse::<Span>().ok();
        let every = every.filter(|every| every.0 == 0 || *every >= Span::secs(1));
        let wrong = || {
            Failure::usage(format!(
                "--figures-every: found `{found}`, expected a second or more such as 5s, or 0"
            ))
        };
        Ok(FigureOptions {
            every: Some(every.ok_or_else(wrong)?).filter(|every| every.0 > 0),
            keep: KeepFigures {
                raw: keep("--keep-figures", &self.keep_figures)?,
                minutes: keep("--keep-figures-minutes", &self.keep_figures_minutes)?,
                hours: keep("--keep-figures-hours", &self.keep_figures_hours)?,
                size: keep_size("--keep-figures-size", &self.keep_figures_size)?,
            },
        })
    }

    /// `usual` is how often they are taken where nobody says so.
    pub fn config(&self, every: &str, usual: &str) -> Vec<ConfigEntry> {
        let settings = [
            ("figures-every", every, usual),
            ("keep-figures", &self.keep_figures, KEEP_FIGURES),
            ("keep-figures-minutes", &self.keep_figures_minutes, KEEP_FIGURES_MINUTES),
            ("keep-figures-hours", &self.keep_figures_hours, KEEP_FIGURES_HOURS),
            ("keep-figures-size", &self.keep_figures_size, KEEP_FIGURES_SIZE),
        ];
        let each = settings.into_iter();
        each.map(|(key, value, usual)| entry(key, value.to_owned(), value == usual)).collect()
    }
}
