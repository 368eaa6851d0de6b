//! The helper process: it does what its order says and tells the result as JSON on standard output,
//! and each step on standard error before it is taken. So whoever waits knows in which one it hangs.

use crate::board::Board;
use crate::cuda::{Error, Gpu};
use crate::measured::{Measured, Played};
use crate::{link, memory, product};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

/// What comes on standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub subject: Target,
    /// The helper ends by itself a while after this, should nobody be there any more to kill it.
    pub limit_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// The caller has put the same one in `CUDA_VISIBLE_DEVICES`.
    Gpu(String),
    Played(Played),
}

/// How long the one who waits has for killing the helper.
const GRACE: Duration = Duration::from_secs(5);
/// An order is short.
const LONGEST_ORDER: u64 = 64 << 10;

/// What a helper process does.
pub fn helper() -> ExitCode {
    let mut text = String::new();
    let read = std::io::stdin().take(LONGEST_ORDER).read_to_string(&mut text);
    let order: Order =
        match read.map_err(serde_json::Error::io).and_then(|_| serde_json::from_str(&text)) {
            Ok(order) => order,
            Err(error) => {
                step(&format!("the order cannot be read: {error}"));
                return ExitCode::from(2);
            }
        };
    let limit = Duration::from_millis(order.limit_ms);
    std::thread::spawn(move || {
        std::thread::sleep(limit + GRACE);
        // Not an orderly end: the driver could wait in it for the GPU.
        std::process::abort();
    });
    let measured = match order.subject {
        Target::Gpu(uuid) => of_gpu(&uuid),
        Target::Played(played) => match (played.hangs, played.crashes) {
            (true, _) => loop {
                step("playing a driver that hangs");
                std::thread::sleep(Duration::from_secs(3_600));
            },
            (_, true) => std::process::abort(),
            (false, false) => played.measured(),
        },
    };
    let mut answer = serde_json::to_vec(&measured).unwrap_or_default();
    answer.push(b'\n');
    match std::io::stdout().write_all(&answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn step(doing: &str) {
    // Whoever waits may be gone.
    let _ = writeln!(std::io::stderr(), "{doing}");
}

fn of_gpu(uuid: &str) -> Measured {
    let mut measured = Measured::default();
    step("asking the board");
    let board = Board::open(uuid);
    if let Some(board) = &board {
        if board.is_divided() {
            let remark = "MIG divides it, so there is no whole GPU to check; nothing was measured";
            measured.remarks.push(remark.to_owned());
            return measured;
        }
        measured.power_cap_watts = board.power_cap();
        step(&format!("the board is at {}", board.state()));
    } else {
        measured.remarks.push("the driver says nothing of its link and its power".to_owned());
    }
    if let Err(error) = all(&mut measured, board.as_ref()) {
        measured.error = Some(error.to_string());
    }
    measured
}

fn all(measured: &mut Measured, board: Option<&Board>) -> Result<(), Error> {
    step("loading the driver and compiling the kernels");
    let gpu = Gpu::open()?;
    measured.name = gpu.name();
    step(&format!("opened {}", measured.name.as_deref().unwrap_or("a GPU without a name")));
    measured.memory = Some(memory::measure(&gpu, &step)?);
    measured.link = Some(link::measure(&gpu, board, &step)?);
    if gpu.multiplies() {
        measured.product = Some(product::measure(&gpu, board, &step)?);
    } else {
        measured.remarks.push("its tensor cores know no BF16, so nothing is multiplied".to_owned());
    }
    step("letting go of the GPU");
    Ok(())
}
