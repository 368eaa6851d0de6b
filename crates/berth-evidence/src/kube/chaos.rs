//! Blows to the control plane and to Berth, round after round.

use crate::report::{Row, Section, Target};
use berth_testbed::run_chaos;
use std::path::Path;

const TEXT: &str = "Six nodes of eight GPUs, the real controllers, two replicas of Berth on one \
    PostgreSQL. Each round brings four gangs of four pods and four single pods as batch Jobs, and a \
    blow: the API server killed and started again, etcd paused for three seconds, every connection \
    of Berth cut five times, pods bound by somebody else while Berth's own bindings of them are \
    under way, a node deleted under a gang, or the leader killed. In all rounds besides, whichever \
    replica leads is killed when five seconds have passed since the last one was. All pods are \
    looked at four times a second. A gang for which there is never room waits all the time.";

pub fn section(berth: &Path, rounds: u32) -> Section {
    let chaos =
        run_chaos(berth, rounds, |round, fault| eprintln!("chaos, round {round}: {fault:?}"));
    chaos.lost_jobs.iter().for_each(|job| eprintln!("lost: {job}"));
    let zero = Target::Exactly(0.0);
    let rows = vec![
        Row::new("siege: rounds", f64::from(chaos.rounds), "", Target::AtLeast(50.0)),
        Row::new("siege: leaders killed", f64::from(chaos.leaders_killed), "", Target::None),
        Row::new(
            "siege: pods that others bound first",
            f64::from(chaos.bound_by_others),
            "",
            Target::None,
        ),
        Row::new("siege: gangs", f64::from(chaos.gangs), "", Target::None),
        Row::new("siege: looks at a pod", chaos.pods_observed as f64, "", Target::None),
        Row::new("siege: jobs lost", chaos.lost_jobs.len() as f64, "", zero),
        Row::new(
            "siege: nodes seen with GPUs given twice",
            chaos.overcommitted_nodes as f64,
            "",
            zero,
        ),
        Row::new(
            "siege: pods bound of a gang that never fits",
            chaos.oversized_gang_pods_bound as f64,
            "",
            zero,
        ),
        Row::new("siege: jobs left over in the books", chaos.jobs_left as f64, "", zero),
        Row::new(
            "siege: longest time a gang was seen bound in part",
            chaos.longest_partial_gang.as_secs_f64(),
            "s",
            Target::None,
        ),
    ];
    Section { title: "Under blows".into(), text: TEXT.to_owned(), rows }
}
