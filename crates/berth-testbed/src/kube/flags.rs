//! The flags each program of a cluster is started with, and whether it is ready.

use super::identity::{CONTROLLER_MANAGER, KWOK, SCHEDULER};
use super::options::Nodes;
use super::part::Part;
use super::{Cluster, probe};
use std::fs;

/// Longer than any test: where nobody renews Leases, no node is to be given up for it.
const NEVER: &str = "24h";

impl Cluster {
    /// Our flags for a part, then those that were asked for.
    pub(super) fn flags(&self, part: Part) -> Vec<String> {
        let mut flags = match part {
            Part::Etcd => self.etcd_flags(),
            Part::ApiServer => self.api_server_flags(),
            Part::ControllerManager => self.controller_manager_flags(),
            Part::Scheduler => self.scheduler_flags(),
            Part::Kwok => self.kwok_flags(),
        };
        flags.extend(self.extra_flags.get(&part).into_iter().flatten().cloned());
        flags
    }

    /// Whether it does its work, asked anew each time.
    pub(super) fn is_ready(&self, part: Part) -> bool {
        let port = self.port(part);
        match part {
            Part::Etcd => probe::answers(port, "/health"),
            Part::Kwok => probe::answers(port, "/healthz"),
            // It listens when it has written all of its certificate.
            Part::ApiServer => {
                probe::is_open(port)
                    && self.try_objects().is_some_and(|objects| objects.answers("/readyz"))
            }
            Part::Scheduler => self.answers_ready(port, "/readyz"),
            // Its controllers run when it has done something.
            Part::ControllerManager => {
                self.answers_ready(port, "/healthz")
                    && self.find(&["serviceaccount", "default"]).is_some()
            }
        }
    }

    fn etcd_flags(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.port(Part::Etcd));
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        vec![
            format!("--data-dir={}", self.etcd_data.path().display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // The default of 2 GiB stops all writes when many pods have come and gone.
            "--quota-backend-bytes=8589934592".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    fn api_server_flags(&self) -> Vec<String> {
        // It makes a certificate and its key before it reads any other file, so the key serves
        // for service accounts as well, and no test needs a tool that makes keys.
        let key = self.path("certs/apiserver.key");
        let key = key.display();
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.port(Part::Etcd)),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port(Part::ApiServer)),
            format!("--cert-dir={}", self.path("certs").display()),
            format!("--service-account-key-file={key}"),
            format!("--service-account-signing-key-file={key}"),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--token-auth-file={}", self.path("tokens.csv").display()),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            // It would publish its loopback address as an endpoint, which is refused.
            "--endpoint-reconciler-type=none".to_owned(),
            "--storage-media-type=application/vnd.kubernetes.protobuf".to_owned(),
            // The names of simulated nodes lead nowhere.
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
        ];
        if self.bare_admission {
            let off = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition";
            flags.push(off.to_owned());
        }
        flags
    }

    fn controller_manager_flags(&self) -> Vec<String> {
        let renewed = self.has_kwok && self.kwok.lease_seconds.is_some();
        let grace = if renewed { "60s" } else { NEVER };
        let mut flags = self.component_flags(Part::ControllerManager);
        flags.extend([
            format!("--kubeconfig={}", self.kubeconfig(CONTROLLER_MANAGER).display()),
            "--leader-elect=false".to_owned(),
            format!(
                "--service-account-private-key-file={}",
                self.path("certs/apiserver.key").display()
            ),
            format!("--root-ca-file={}", self.ca().display()),
            // Its own identity may do little; each controller has one with the rights it needs.
            "--use-service-account-credentials=true".to_owned(),
            // Enough that its limits are not what a test waits for.
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            format!("--node-monitor-grace-period={grace}"),
        ]);
        flags
    }

    fn scheduler_flags(&self) -> Vec<String> {
        let file = self.path("scheduler.yaml");
        let kubeconfig = self.kubeconfig(SCHEDULER);
        let config = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: {kubeconfig:?}
  qps: 5000
  burst: 5000
  contentType: application/vnd.kubernetes.protobuf
leaderElection: {{leaderElect: false}}
"
        );
        fs::write(&file, config).expect("the folder can be written");
        let mut flags = self.component_flags(Part::Scheduler);
        flags.push(format!("--config={}", file.display()));
        flags
    }

    /// What the controller manager and the scheduler have in common.
    fn component_flags(&self, part: Part) -> Vec<String> {
        let certificates = self.path(&format!("certs-{}", part.program()));
        vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port(part)),
            format!("--cert-dir={}", certificates.display()),
            // Whoever asks how they are need not be known to the API server, which may be away.
            "--authentication-skip-lookup".to_owned(),
            "--authorization-always-allow-paths=/healthz,/readyz,/metrics".to_owned(),
        ]
    }

    fn kwok_flags(&self) -> Vec<String> {
        let port = self.port(Part::Kwok);
        let stages = self.path("stages.yaml");
        fs::write(&stages, include_str!("stages.yaml")).expect("the folder can be written");
        let nodes = match &self.kwok.nodes {
            Nodes::All => "--manage-all-nodes=true".to_owned(),
            Nodes::Labelled(selector) => format!("--manage-nodes-with-label-selector={selector}"),
            Nodes::Annotated(selector) => {
                format!("--manage-nodes-with-annotation-selector={selector}")
            }
        };
        vec![
            format!("--kubeconfig={}", self.kubeconfig(KWOK).display()),
            format!("--config={}", stages.display()),
            format!("--server-address=127.0.0.1:{port}"),
            // Who asks a simulated node for a log is to find kwok there, and no kubelet of this
            // machine.
            "--node-ip=127.0.0.1".to_owned(),
            format!("--node-port={port}"),
            // Room for every pod of a large test.
            "--cidr=10.128.0.0/9".to_owned(),
            // Its word for "no Lease".
            format!("--node-lease-duration-seconds={}", self.kwok.lease_seconds.unwrap_or(0)),
            nodes,
        ]
    }
}
