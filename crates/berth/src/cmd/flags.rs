//! The keys of a job file as flags. They come from the one table of keys, so there is a flag for
//! each, read as a file would be.

use berth_file::job::{JobFile, KEYS, Key, Takes};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

const HEADING: &str = "Keys of the job file";

/// What the flags say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFlags(pub JobFile);

impl Args for JobFlags {
    fn augment_args(command: Command) -> Command {
        command.args(KEYS.iter().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        JobFlags::augment_args(command)
    }
}

impl FromArgMatches for JobFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<JobFlags, clap::Error> {
        let mut file = JobFile::default();
        for key in KEYS {
            let Some(values) = matches.get_many::<String>(key.name) else { continue };
            let values: Vec<String> = values.cloned().collect();
            file.set(key.name, &values).map_err(mistake)?;
        }
        Ok(JobFlags(file))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = JobFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

/// An error in a value, with the usage of this command: clap would print that of the whole program.
fn mistake(error: impl std::fmt::Display) -> clap::Error {
    let mut command = Command::new("berth").override_usage("berth run [OPTIONS] -- COMMAND");
    clap::Error::raw(ErrorKind::ValueValidation, error).format(&mut command)
}

fn arg(key: &'static Key) -> Arg {
    let arg = Arg::new(key.name).help(key.help);
    if key.takes == Takes::Rest {
        return arg
            .last(true)
            .num_args(0..)
            .value_name("COMMAND")
            .help("The command and its arguments");
    }
    let arg = arg.long(key.flag).help_heading(HEADING).value_name(value_name(key.takes));
    let arg = match key.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    match key.takes {
        Takes::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Takes::Value => arg.allow_negative_numbers(true),
        Takes::Values | Takes::Pairs | Takes::NamesOrPairs | Takes::Lists | Takes::Rest => {
            arg.action(ArgAction::Append)
        }
    }
}

fn value_name(takes: Takes) -> &'static str {
    match takes {
        Takes::Switch => "BOOL",
        Takes::Value | Takes::Values | Takes::Rest => "VALUE",
        Takes::Pairs => "NAME=VALUE",
        Takes::NamesOrPairs => "NAME[=VALUE]",
        Takes::Lists => "NAME=A,B",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<JobFile, clap::Error> {
        let command = JobFlags::augment_args(Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(args)?;
        JobFlags::from_arg_matches(&matches).map(|flags| flags.0)
    }

    fn read(text: &str) -> JobFile {
        berth_file::job::read(text).unwrap().file
    }

    #[test]
    fn flags_say_what_a_file_would() {
        let flags = parse(&[
            "-g",
            "H100:8",
            "-N",
            "2",
            "--time",
            "3d",
            "-e",
            "A=1",
            "-e",
            "B=x=y",
            "--secret",
            "HF_TOKEN",
            "--hold",
            "--sweep",
            "lr=1e-4,3e-4",
            "--tag",
            "a",
            "--priority",
            "-5",
            "--",
            "python",
            "train.py",
            "--lr",
            "$lr",
        ]);
        let file = read(
            "gpus: H100:8\nnodes: 2\ntime: 3d\nenv: {A: 1, B: x=y}\nsecrets: [HF_TOKEN]\n\
             hold: true\nsweep: {lr: [1e-4, 3e-4]}\ntags: [a]\npriority: -5\n\
             run: [python, train.py, --lr, $lr]\n",
        );
        assert_eq!(flags.unwrap(), file);
        assert_eq!(parse(&["--hold=false"]).unwrap(), read("hold: false"));
        assert_eq!(parse(&[]).unwrap(), JobFile::default());
    }

    #[test]
    fn there_is_a_flag_for_every_key() {
        for key in KEYS.iter().filter(|key| key.takes != Takes::Rest) {
            let command = JobFlags::augment_args(Command::new("run"));
            assert!(
                command.get_arguments().any(|arg| arg.get_long() == Some(key.flag)),
                "no --{}",
                key.flag
            );
        }
    }

    #[test]
    fn a_value_that_makes_no_sense_names_its_flag() {
        let error = parse(&["--gpus", "1.5"]).unwrap_err().to_string();
        assert!(error.contains("--gpus: found `1.5`, expected whole GPUs"), "{error}");
    }
}
