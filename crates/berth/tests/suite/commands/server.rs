//! A server that says what it is told to, and the real binary against it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

#[derive(Clone)]
pub enum Reply {
    Json(u16, String),
    Lines(String),
    /// The answer breaks off after this.
    Broken(String),
    /// The answer goes on, but nothing more comes.
    Open(String),
}

/// Replies of one route, in order; the last one is given again and again.
struct Route {
    /// Method and path, without the query.
    place: &'static str,
    replies: VecDeque<Reply>,
}

pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    home: TempDir,
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Server {
    pub fn start(routes: Vec<(&'static str, Vec<Reply>)>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let routes: Vec<Route> = routes
            .into_iter()
            .map(|(place, replies)| Route { place, replies: replies.into() })
            .collect();
        let (notes, routes) = (asked.clone(), Arc::new(Mutex::new(routes)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (notes, routes) = (notes.clone(), routes.clone());
                std::thread::spawn(move || answer(stream.unwrap(), &notes, &routes));
            }
        });
        Server { url, asked, home: tempfile::tempdir().unwrap() }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.home().join(name), text).unwrap();
    }

    /// The requests so far: head and body.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The one request to that place.
    pub fn asked_at(&self, place: &str) -> String {
        let all = self.asked();
        all.iter()
            .find(|asked| asked.starts_with(place))
            .cloned()
            .unwrap_or_else(|| panic!("nothing was asked at {place}: {all:#?}"))
    }

    pub fn berth(&self, args: &[&str]) -> Ran {
        self.berth_with(args, "", &[("BERTH_URL", &self.url), ("BERTH_TOKEN", "secret-token")])
    }

    pub fn berth_with(&self, args: &[&str], stdin: &str, variables: &[(&str, &str)]) -> Ran {
        let mut child = self.spawn(args, variables);
        // A command that does not read has closed its end, which is fine.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        ran(child)
    }

    /// The same at a terminal, where this is typed; all that is shown, and the exit code.
    pub fn at_terminal(&self, args: &[&str], typed: &str, variables: &[(&str, &str)]) -> Ran {
        let quoted = args.iter().map(|arg| format!("'{arg}'")).collect::<Vec<_>>().join(" ");
        let line = format!("{} {quoted}", env!("CARGO_BIN_EXE_berth"));
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env_clear();
        command.env("HOME", self.home()).env("TZ", "UTC").env("PATH", "/usr/bin:/bin");
        command
            .env("BERTH_URL", &self.url)
            .env("BERTH_TOKEN", "secret-token")
            .env("SHELL", "/bin/sh");
        command.envs(variables.iter().copied()).current_dir(self.home());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("script of util-linux is there");
        let _ = child.stdin.as_mut().unwrap().write_all(typed.as_bytes());
        ran(child)
    }

    pub fn spawn(&self, args: &[&str], variables: &[(&str, &str)]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_berth"))
            .args(args)
            .env_clear()
            .env("HOME", self.home())
            .env("TZ", "UTC")
            .envs(variables.iter().copied())
            .current_dir(self.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

pub fn ran(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn answer(mut stream: TcpStream, notes: &Mutex<Vec<String>>, routes: &Mutex<Vec<Route>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read(&mut reader) {
        let reply = {
            let mut routes = routes.lock().unwrap();
            let place = request.lines().next().unwrap().rsplit_once(' ').unwrap().0;
            let place = place.split('?').next().unwrap();
            let route = routes.iter_mut().find(|route| route.place == place);
            route.map_or_else(not_there, |route| match route.replies.len() {
                1 => route.replies[0].clone(),
                _ => route.replies.pop_front().expect("a reply"),
            })
        };
        notes.lock().unwrap().push(request);
        let stays = matches!(reply, Reply::Open(_));
        let (status, media, body, longer) = match reply {
            Reply::Json(status, body) => (status, "application/json", body, 0),
            Reply::Lines(body) => (200, "application/x-ndjson", body, 0),
            Reply::Broken(body) | Reply::Open(body) => (200, "application/x-ndjson", body, 100),
        };
        let length = body.len() + longer;
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n"
        );
        let sent = stream.write_all(format!("{head}{body}").as_bytes());
        if stays {
            continue;
        }
        if sent.is_err() || longer > 0 {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn not_there() -> Reply {
    Reply::Json(404, problem("BRT0010", 404, "there is no such address"))
}

pub fn problem(code: &str, status: u16, detail: &str) -> String {
    format!(
        r#"{{"type":"urn:berth:problem:{code}","title":"A title","status":{status},
            "detail":"{detail}","code":"{code}","next":"Do this."}}"#
    )
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8_lossy(&body))
}
