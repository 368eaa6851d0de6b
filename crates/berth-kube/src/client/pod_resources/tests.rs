use super::*;
use crate::client::protobuf::encode::{bytes, number};
use http::{HeaderValue, Response};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use std::convert::Infallible;
use std::path::PathBuf;
use tokio::net::UnixListener;

/// What a kubelet answers: a message behind its prefix, and the code of gRPC.
#[derive(Clone)]
struct Answer {
    body: Vec<u8>,
    code: &'static str,
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}

/// A server of gRPC on a socket, and what it was asked.
async fn kubelet(answer: Answer) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("kubelet.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            let service = service_fn(move |request| respond(request, answer.clone()));
            let serving = server::Builder::new(TokioExecutor::new());
            tokio::spawn(serving.serve_connection(TokioIo::new(stream), service));
        }
    });
    (folder, socket)
}

type Body = http_body_util::StreamBody<
    futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>,
>;

async fn respond(request: Request<Incoming>, answer: Answer) -> Result<Response<Body>, Infallible> {
    assert_eq!(request.uri().path(), "/v1.PodResourcesLister/List");
    assert_eq!(request.headers()[header::CONTENT_TYPE], "application/grpc");
    let asked = request.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&asked[..], NOTHING);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(answer.code));
    trailers.insert("grpc-message", HeaderValue::from_static("as it says"));
    let frames = [Frame::data(Bytes::from(answer.body)), Frame::trailers(trailers)];
    let frames: Vec<_> = frames.into_iter().map(Ok).collect();
    let body = Body::new(futures_util::stream::iter(frames));
    let response = Response::builder().header(header::CONTENT_TYPE, "application/grpc");
    Ok(response.body(body).unwrap())
}

async fn ask_who_answers(body: Vec<u8>) -> Result<Vec<PodDevices>, PodResourcesError> {
    let (_folder, socket) = kubelet(Answer { body, code: "0" }).await;
    pod_devices(&socket).await
}

fn pod(name: &str, containers: &[Vec<u8>]) -> Vec<u8> {
    let containers = containers.iter().map(|container| bytes(3, container));
    let containers = containers.collect::<Vec<_>>().concat();
    bytes(1, [bytes(1, name), bytes(2, "ml"), containers, bytes(4, [3])].concat())
}

fn devices(resource: &str, ids: &[&str]) -> Vec<u8> {
    let ids = ids.iter().map(|id| bytes(2, id)).collect::<Vec<_>>().concat();
    let numa = bytes(3, bytes(1, number(1, 0)));
    bytes(2, [bytes(1, resource), ids, numa].concat())
}

#[tokio::test]
async fn the_kubelet_says_which_pod_has_which_device() {
    let claim = [bytes(1, "class"), bytes(2, "claim"), bytes(3, "ml")];
    let device = [bytes(2, "gpu.nvidia.com"), bytes(3, "node-a"), bytes(4, "gpu-2")].concat();
    let claim = bytes(5, [claim.concat(), bytes(4, device)].concat());
    let listed = [
        pod("plain", &[bytes(1, "main")]),
        pod(
            "two",
            &[
                [
                    bytes(1, "main"),
                    devices("nvidia.com/gpu", &["GPU-1", "GPU-2"]),
                    bytes(3, [1, 2]),
                ]
                .concat(),
                [bytes(1, "side"), devices("rdma/hca", &["mlx5_0"])].concat(),
            ],
        ),
        pod("claims", &[[bytes(1, "main"), claim].concat()]),
    ];
    let found = ask_who_answers(framed(&listed.concat())).await.unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|pod| {
            let all = pod.devices.iter().chain(&pod.claimed);
            let all: Vec<String> = all.map(|(of, name)| format!("{of}={name}")).collect();
            format!("{}/{} {}", pod.namespace, pod.name, all.join(" "))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "ml/two nvidia.com/gpu=GPU-1 nvidia.com/gpu=GPU-2 rdma/hca=mlx5_0",
            "ml/claims gpu.nvidia.com=gpu-2",
        ]
    );
    assert_eq!(ask_who_answers(framed(&[])).await.unwrap(), []);
}

#[tokio::test]
async fn an_answer_that_is_none_says_what_it_is() {
    for (body, why) in [
        (vec![], "no message"),
        (vec![1, 0, 0, 0, 0], "compressed"),
        (vec![0, 0, 0, 0, 9, 1], "cut off"),
        (framed(&[0x0a, 0x7f]), "in the middle of a field"),
        (vec![0; LARGEST_ANSWER + 1], "larger than"),
    ] {
        let error = ask_who_answers(body).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let (_folder, socket) = kubelet(Answer { body: Vec::new(), code: "12" }).await;
    let refused = pod_devices(&socket).await.unwrap_err();
    assert_eq!(refused.to_string(), "the kubelet refuses, with code 12 of gRPC: as it says");
    let nobody = pod_devices(Path::new("/nowhere/kubelet.sock")).await;
    assert!(matches!(nobody, Err(PodResourcesError::Connect(_))));
}
