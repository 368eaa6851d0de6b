//! Changes as sentences.

use crate::whatif::change::{Change, Starts, What};
use berth_model::{Bound, Lifecycle};
use std::fmt;

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} it would ", self.what)?;
        match &self.starts {
            Starts::Now => write!(f, "start now"),
            Starts::By { at, stops: 1 } => {
                write!(f, "take the GPUs of 1 running job and start by {at}")
            }
            Starts::By { at, stops } => {
                write!(f, "take the GPUs of {stops} running jobs and start by {at}")
            }
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Release => write!(f, "released from its hold"),
            What::NoDependencies => write!(f, "without the jobs it comes after"),
            What::NoBeginTime => write!(f, "without its begin time"),
            What::Preemptible => write!(f, "as a job that may be stopped"),
            What::Model { model } => write!(f, "on {model} GPUs"),
            What::Lifecycle { lifecycle } => {
                let name = match lifecycle {
                    Lifecycle::Spot => "spot",
                    Lifecycle::OnDemand => "on-demand",
                    Lifecycle::Reserved => "reserved",
                };
                write!(f, "on {name} machines")
            }
            What::Apart { level } => write!(f, "without having to lie in one {level}"),
            What::Unspread { level } => write!(f, "with more tasks to a {level}"),
            What::Anywhere => write!(f, "without its wishes about other jobs"),
            What::FewerTasks { tasks: 1, of } => write!(f, "with 1 task instead of {of}"),
            What::FewerTasks { tasks, of } => write!(f, "with {tasks} tasks instead of {of}"),
            What::PartOfGpu { part } => write!(f, "with {part} of a GPU instead of a whole one"),
            What::TimeLimit { limit, of } if of.is_unlimited() => {
                write!(f, "with a time limit of {limit} instead of none")
            }
            What::TimeLimit { limit, of } => {
                write!(f, "with a time limit of {limit} instead of {of}")
            }
            What::Class { class } => write!(f, "with priority {class}"),
            What::Queue { queue } => write!(f, "in queue {queue}"),
            What::Raise { queue, bound, resource, from, to } => match bound {
                Bound::Limit => {
                    write!(f, "with a limit of {to} {resource} instead of {from} for queue {queue}")
                }
                Bound::Borrow => {
                    write!(f, "if queue {queue} might borrow {to} {resource} instead of {from},")
                }
                Bound::UserLimit => write!(
                    f,
                    "with a limit of {to} {resource} instead of {from} for each user of queue {queue}"
                ),
            },
        }
    }
}
