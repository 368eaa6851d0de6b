//! Berth's node agent in the place of an exporter: the real program, with GPUs that a file plays and
//! a kubelet that answers on its socket.

use super::{line, put};
use crate::gpus::{H100, add_node};
use crate::jobs::{IMAGE, name, run, until_runs};
use crate::support::{berth_with, cluster, until};
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio::net::UnixListener;

/// A field of a binary message that is a text or a message: all of them are short.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).ok().filter(|length| *length < 128);
    [&[number << 3 | 2, length.expect("it is short")], value].concat()
}

/// What the kubelet says of a pod that it has given a GPU.
fn listed(namespace: &str, pod: &str, uuid: &str) -> Vec<u8> {
    let devices = [field(1, b"nvidia.com/gpu"), field(2, uuid.as_bytes())].concat();
    let container = [field(1, b"main"), field(2, &devices)].concat();
    let parts = [field(1, pod.as_bytes()), field(2, namespace.as_bytes()), field(3, &container)];
    field(1, &parts.concat())
}

/// A kubelet that answers what is in there, for as long as the test runs.
fn kubelet(folder: &Path, says: Arc<Mutex<Vec<u8>>>) -> PathBuf {
    let socket = folder.join("kubelet.sock");
    let path = socket.clone();
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = UnixListener::bind(path).unwrap();
            ready.send(()).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let says = says.clone();
                let answer = service_fn(move |request| answer(request, says.clone()));
                let serving = http2::Builder::new(TokioExecutor::new());
                tokio::spawn(serving.serve_connection(TokioIo::new(stream), answer));
            }
        });
    });
    is_ready.recv().expect("it listens");
    socket
}

type Frames = stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>;

async fn answer(
    request: Request<Incoming>,
    says: Arc<Mutex<Vec<u8>>>,
) -> Result<Response<StreamBody<Frames>>, Infallible> {
    assert_eq!(request.uri().path(), "/v1.PodResourcesLister/List");
    let message = says.lock().unwrap().clone();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let data = Bytes::from([&[0], &length[..], &message].concat());
    let frames = vec![Ok(Frame::data(data)), Ok(Frame::trailers(trailers))];
    Ok(Response::new(StreamBody::new(stream::iter(frames))))
}

/// The program, which ends with this.
struct Agent {
    child: Child,
    port: u16,
}

impl Agent {
    fn start(recording: &Path, kubelet: &Path) -> Agent {
        let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
            .args(["node-agent", "--listen", "127.0.0.1:0", "--every", "1s", "--node", "a"])
            .args(["--gpus", "2xH100", "--gpu-recording"])
            .arg(recording)
            .arg("--kubelet")
            .arg(kubelet)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let said = BufReader::new(child.stdout.take().unwrap()).lines().next();
        let said = said.expect("it says something").expect("it is text");
        let port = said.rsplit(':').next().and_then(|rest| rest.strip_suffix("/metrics"));
        let port = port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{said}"));
        Agent { child, port }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn where_no_exporter_is_the_node_agent_tells_the_same() {
    let cluster = cluster();
    add_node(&cluster, "a", H100, "nvidia.com/gpu: 2");
    let berth = berth_with(&cluster, &[IMAGE, &["--figures-every", "1s"]].concat());
    let job = run(&berth, &["-g", "1", "--name", "train", "--", "python", "train.py"]);
    let pod = until_runs(&cluster, &job, 1).remove(0);
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("gpus.json");
    let busy = r#"[{}, {"sm_active": 900, "tensor_active": 800, "memory_used_mib": 71424,
        "power_watts": 500, "sm_clock_mhz": 990, "sm_clock_max_mhz": 1980}]"#;
    std::fs::write(&recording, busy).unwrap();
    let says = Arc::default();
    let agent = Agent::start(&recording, &kubelet(folder.path(), Arc::clone(&says)));
    put(&cluster, "berth-node-agent", "agent-x7", "a", agent.port);

    let read = || berth.get(&format!("/v1/jobs/{job}/figures?step=1s"));
    let gpu = || read()["tasks"][0]["gpus"][0].clone();
    until("it is said that the GPUs are nobody's", || {
        read()["notes"].to_string().contains("not which pod has which")
    });
    assert_eq!(line(&berth.get("/v1/nodes/a/figures")["gpus"][1], "sm_active")["max"], 900);
    *says.lock().unwrap() = listed("berth-default", name(&pod), "GPU-1");
    until("it is measured", || !gpu().is_null() && line(&gpu(), "sm_active")["mean"] == 900);
    let found = gpu();
    assert_eq!((&found["gpu"], &found["uuid"]), (&1.into(), &"GPU-1".into()), "{found}");
    assert_eq!(line(&found, "gpu_memory")["max"], 71_424, "{found}");
    assert_eq!(read()["summary"]["mfu"], 400, "{found}");
    let shown = berth.run_ok(&["metrics", &job]);
    assert!(shown.contains("gpu 1 H100-80GB") && shown.contains("90.0 %"), "{shown}");
}
