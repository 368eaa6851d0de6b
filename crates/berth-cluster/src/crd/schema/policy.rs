//! What a Policy's spec can say: every knob.

use crate::crd::schema::parts::{any, boolean, list, object, scalar, whole, with, word};
use berth_file::object::{knobs, words_of};
use serde_json::Value;

pub fn spec() -> Value {
    object(knobs().map(|(knob, kind)| (knob, with(value(kind), says(knob)))))
}

fn value(kind: &str) -> Value {
    match kind {
        "number" => whole("", Some(0)),
        "flag" => boolean(""),
        "unit" => scalar(""),
        "passes" => list("", word("", &words_of("passes"))),
        kind => match words_of(kind).as_slice() {
            [] => any(""),
            words => word("", words),
        },
    }
}

fn says(knob: &str) -> &'static str {
    match knob {
        "passes" => "Which passes run, besides settle and share (all)",
        "grace" => "Time between SIGTERM and SIGKILL for jobs that name none, and the most (5m)",
        "stale" => "How long a gang below its minimum keeps its GPUs (60s)",
        "strategy" => "How whole-GPU jobs choose nodes (pack)",
        "order" => "Order inside queues that name none (response-ratio)",
        "fragmentation" => "Whether fractions are placed so that what is left is of use (true)",
        "share_gpus" => "Whose shares may lie on one GPU at the same time (team)",
        "gpu_reserve" => "Part of a GPU's CPU and memory that pods without GPUs leave it (0.5)",
        "energy" => "Weight of energy against fit between models (0.1)",
        "reservations" => "Blocked jobs per queue that hold a reservation (1)",
        "aging_max" => "A job that has waited this long holds a reservation in any case (24h)",
        "backfill" => "Where the ends of running jobs are taken from (limits)",
        "default_time_limit" => "Enforced for jobs that name no time limit (24h)",
        "pod_time_limit" => "Enforced for pods of work that ends and names none (0s: none)",
        "service_pod_time_limit" => "The same for pods of services (0s: none)",
        "min_runtime" => "Time since its start during which a job is no victim (0s)",
        "preempt_after" => "How long a job waits before it displaces others (0s)",
        "restart_cost" => "Assumed for jobs that name none (2m)",
        "time_sharing" => "Whether queues share time (false)",
        "quantum" => "Running time after which a job may be paused for shorter ones (30m)",
        "pauses_per_day" => "Pauses of one job in a day (4)",
        "half_life" => "Half-life of past use (7d)",
        "past_use" => "How strongly past use corrects what is divided (1)",
        "credits" => "Whether credits are earned and spent (true)",
        "credit_cap" => "The most credit a queue keeps, as time of its whole quota (24h)",
        "moves_per_hour" => "Jobs moved to defragment in any hour (12)",
        "idle_after" => "An idle bought node is given back after this time (10m)",
        "mix" => "How many recent starts count as the mix of requests (1000)",
        "search" => "Steps after which packing unlike tasks gives up (20000)",
        "forecast_runs" => "Runs of a forecast (32)",
        "forecast_horizon" => "How far a forecast looks ahead (14d)",
        "outcomes" => "Ended jobs whose outcome is kept for dependencies (10000)",
        _ => "",
    }
}
