//! A terminal over a WebSocket, against a server of its own.

use berth_api::client::{Error, Options, ShellOutput};
use berth_api::wire::{ShellAsk, ShellTell};
use berth_api::{Client, Code, Problem};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

async fn listen() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, Client::new(Options::new(url).token("secret-token")).unwrap())
}

#[tokio::test]
async fn what_is_typed_goes_there_and_what_is_shown_comes_back() {
    let (listener, client) = listen().await;
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let open = socket.next().await.unwrap().unwrap().into_text().unwrap();
        let typed = socket.next().await.unwrap().unwrap().into_data();
        let shown: Vec<u8> = typed.to_ascii_uppercase();
        socket.send(Message::binary(shown)).await.unwrap();
        let exit = serde_json::to_string(&ShellTell::Exit { code: 3 }).unwrap();
        socket.send(Message::text(exit)).await.unwrap();
        socket.close(None).await.unwrap();
        serde_json::from_str::<ShellAsk>(&open).unwrap()
    });
    let open = ShellAsk::Open {
        task: Some(1),
        command: vec!["bash".into()],
        term: "xterm".into(),
        rows: 24,
        columns: 80,
    };
    let mut shell = client.shell("17").await.unwrap();
    shell.ask(&open).await.unwrap();
    shell.write(b"ls\r".to_vec()).await.unwrap();
    assert_eq!(shell.next().await.unwrap(), Some(ShellOutput::Bytes(b"LS\r".to_vec())));
    let exit = ShellOutput::Tell(ShellTell::Exit { code: 3 });
    assert_eq!(shell.next().await.unwrap(), Some(exit));
    assert_eq!(shell.next().await.unwrap(), None);
    assert_eq!(server.await.unwrap(), open);
}

#[tokio::test]
async fn a_refusal_is_the_problem_that_the_server_wrote() {
    let (listener, client) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0u8; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        let request = String::from_utf8_lossy(&buffer[..read]).to_lowercase();
        assert!(request.starts_with("get /v1/jobs/17/shell "), "{request}");
        assert!(request.contains("authorization: bearer secret-token"), "{request}");
        let problem = Problem::new(Code::WrongState, "17 does not run");
        let body = serde_json::to_string(&problem).unwrap();
        let head = format!("HTTP/1.1 409 x\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    });
    let Err(error) = client.shell("17").await else { panic!("it was not refused") };
    assert_eq!(error.problem().unwrap().known_code(), Some(Code::WrongState));
}

#[tokio::test]
async fn an_answer_that_is_no_websocket_is_told_from_one() {
    let (listener, client) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0u8; 4096];
        let _ = stream.read(&mut buffer).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    });
    let Err(error) = client.shell("17").await else { panic!("it was taken") };
    assert!(matches!(error, Error::Status { status: 200, .. }), "{error:?}");
}
