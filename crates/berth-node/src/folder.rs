//! The name of a task's folder.

use berth_model::LeaseId;

/// The name of a lease's folder. A lease is written `17_3/0#2`, which no file can be called.
pub(crate) fn folder_name(lease: LeaseId) -> String {
    format!("{}.{}.{}", lease.job, lease.task, lease.attempt)
}

pub(crate) fn parse_folder_name(name: &str) -> Option<LeaseId> {
    let mut parts = name.split('.');
    let job = parts.next()?.parse().ok()?;
    let task = parts.next()?.parse().ok()?;
    let attempt = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some(LeaseId { job, task, attempt })
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobId;

    #[test]
    fn a_lease_is_found_again_by_its_folder() {
        for job in [JobId::new(17), JobId::new(17).element(3)] {
            let lease = LeaseId { job, task: 4, attempt: 2 };
            assert_eq!(parse_folder_name(&folder_name(lease)), Some(lease));
        }
        for name in ["", "17", "17.0", "17.0.1.2", "a.0.1", "17.0.x"] {
            assert_eq!(parse_folder_name(name), None, "{name}");
        }
    }
}
