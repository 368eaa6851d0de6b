//! Blows to the control plane and to Berth, round after round.

use crate::report::{Row, Section, Target};
use berth_testbed::besiege;
use std::path::Path;

const TEXT: &str = "Six nodes of eight GPUs, the real controllers, two replicas of Berth on one \
    PostgreSQL. Each round brings four gangs of four pods and four single pods as batch Jobs, and a \
    blow: the API server killed and started again, etcd paused for three seconds, every connection \
    of Berth cut five times, pods bound by somebody else while Berth's own bindings of them are \
    under way, a node deleted under a gang, or the leader killed. In all rounds besides, whichever \
    replica leads is killed when five seconds have passed since the last one was. All pods are \
    looked at four times a second. A gang for which there is never room waits all the time.";

pub fn section(berth: &Path, rounds: u32) -> Section {
    let run = besiege(berth, rounds, |round, fault| eprintln!("siege, round {round}: {fault:?}"));
    run.lost.iter().for_each(|job| eprintln!("lost: {job}"));
    let zero = Target::Exactly(0.0);
    let rows = vec![
        Row::new("siege: rounds", f64::from(run.rounds), "", Target::AtLeast(50.0)),
        Row::new("siege: leaders killed", f64::from(run.leaders_killed), "", Target::None),
        Row::new(
            "siege: pods that others bound first",
            f64::from(run.taken_away),
            "",
            Target::None,
        ),
        Row::new("siege: gangs", f64::from(run.gangs), "", Target::None),
        Row::new("siege: looks at a pod", run.looks as f64, "", Target::None),
        Row::new("siege: jobs lost", run.lost.len() as f64, "", zero),
        Row::new("siege: nodes seen with GPUs given twice", run.given_twice as f64, "", zero),
        Row::new("siege: pods bound of a gang that never fits", run.halves as f64, "", zero),
        Row::new("siege: jobs left over in the books", run.left_over as f64, "", zero),
        Row::new(
            "siege: longest time a gang was seen bound in part",
            run.longest_half.as_secs_f64(),
            "s",
            Target::None,
        ),
    ];
    Section { title: "Under blows".into(), text: TEXT.to_owned(), rows }
}
