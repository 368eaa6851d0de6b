//! Forecasts, made in the background: whoever asks gets the last one with its age.

use crate::clock;
use crate::handle::Handle;
use berth_core::{Ask, Copies, Forecast};
use berth_model::{Event, Stamped};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A forecast should be less than a minute old when it is read. It is shown until the next one
/// is ready, so this and twice what one takes have to fit in.
const EVERY: Duration = Duration::from_secs(20);
/// One that takes long is made less often, so that it does not keep a core busy.
const REST: u32 = 2;
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Makes one forecast after the other while there is something to foresee.
pub fn begin(engine: Handle) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut maker = Maker::begin(engine.clone());
        loop {
            let clock = Instant::now();
            match maker.make().await {
                Ok(Some(made)) => engine.core().forecast = Some(Arc::new(made)),
                Ok(None) => {}
                // It has said why. Whoever waits for a forecast gets the next one.
                Err(_) => maker = Maker::begin(engine.clone()),
            }
            let took = clock.elapsed();
            tokio::time::sleep(EVERY.saturating_sub(took).max(took * REST).min(LONGEST_REST)).await;
        }
    })
}

type Answer = oneshot::Sender<Option<Forecast>>;

/// A thread that makes forecasts, all of them: the memory of one is then at hand for the next. It
/// ends with this.
struct Maker(mpsc::Sender<Answer>);

impl Maker {
    fn begin(engine: Handle) -> Maker {
        let (ask, asked) = mpsc::channel::<Answer>();
        std::thread::spawn(move || {
            let mut copies = Copies::default();
            for answer in asked {
                // The receiver is gone where the server has stopped meanwhile.
                let _ = answer.send(from_now(&engine, &mut copies));
            }
        });
        Maker(ask)
    }

    /// An error where the thread has ended.
    async fn make(&self) -> Result<Option<Forecast>, oneshot::error::RecvError> {
        let (answer, answered) = oneshot::channel();
        // Where that fails, the answer is dropped.
        let _ = self.0.send(answer);
        answered.await
    }
}

/// Nothing where no job waits.
fn from_now(engine: &Handle, copies: &mut Copies) -> Option<Forecast> {
    // Before the loop has to wait for the next copy.
    copies.clear();
    let mut state = {
        let core = engine.core();
        let waits = core.jobs.values().any(|job| job.leases.is_empty());
        waits.then(|| core.state.clone())?
    };
    // The clock of a state stands at its last event. A tick moves that of the copy, so that the
    // forecast begins now.
    let (seq, at) = (state.seq() + 1, clock::now().max(state.now()));
    if let Err(rejected) = state.apply(&Stamped { seq, at, event: Event::Tick }) {
        tracing::error!(%rejected, "a forecast begins at the last event");
    }
    let runs = state.policy().forecast_runs;
    Some(copies.forecast(state, &Ask { runs, seed: seq, ..Ask::default() }))
}
