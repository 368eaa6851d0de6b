//! `nvidia-smi`, which comes with every driver. It makes and removes MIG instances; the library that
//! Berth reads figures with cannot, but by calls that the compiler cannot check.

use std::io;
use std::process::{Command, Stdio};

/// Runs `nvidia-smi` with arguments and returns what it prints.
pub trait Smi: Send + Sync {
    fn run(&self, args: &[&str]) -> Result<String, SmiError>;
}

#[derive(Debug, thiserror::Error)]
pub enum SmiError {
    #[error("nvidia-smi cannot be run: {0}")]
    Run(#[from] io::Error),
    #[error("nvidia-smi {args}: {told}")]
    Refused { args: String, code: Option<i32>, told: String },
    #[error("nvidia-smi {args} printed what Berth cannot read: {line}")]
    Unreadable { args: String, line: String },
}

/// What it ends with, of the codes of NVIDIA's library.
const NO_PERMISSION: i32 = 4;
const NOT_FOUND: i32 = 6;
const IN_USE: i32 = 19;
const INSUFFICIENT: i32 = 23;

impl SmiError {
    fn code(&self) -> Option<i32> {
        match self {
            SmiError::Refused { code, .. } => *code,
            _ => None,
        }
    }

    /// Some process has it open. It may be gone in a moment.
    pub fn is_in_use(&self) -> bool {
        self.code() == Some(IN_USE)
    }

    /// There is no such thing, or there are none.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(NOT_FOUND)
    }

    /// Other instances are in the way.
    pub fn is_insufficient(&self) -> bool {
        self.code() == Some(INSUFFICIENT)
    }

    pub fn is_not_permitted(&self) -> bool {
        self.code() == Some(NO_PERMISSION)
    }
}

/// The program of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct NvidiaSmi;

impl Smi for NvidiaSmi {
    fn run(&self, args: &[&str]) -> Result<String, SmiError> {
        let output = Command::new("nvidia-smi").args(args).stdin(Stdio::null()).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let printed = text(&output.stdout);
        if output.status.success() {
            return Ok(printed);
        }
        // It complains on its standard output.
        let told = [printed, text(&output.stderr)].join(" ");
        let told = told.lines().next().unwrap_or_default().trim().to_owned();
        Err(SmiError::Refused { args: args.join(" "), code: output.status.code(), told })
    }
}
