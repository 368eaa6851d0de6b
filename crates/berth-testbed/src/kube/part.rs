//! The programs of a cluster.

/// One program of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    Kwok,
}

impl Part {
    /// In the order in which they need each other.
    pub(super) const ALL: [Part; 5] =
        [Part::Etcd, Part::ApiServer, Part::ControllerManager, Part::Scheduler, Part::Kwok];

    pub fn program(self) -> &'static str {
        match self {
            Part::Etcd => "etcd",
            Part::ApiServer => "kube-apiserver",
            Part::ControllerManager => "kube-controller-manager",
            Part::Scheduler => "kube-scheduler",
            Part::Kwok => "kwok",
        }
    }
}
