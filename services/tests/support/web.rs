//! The web server as a process, its components, and a client of it.

#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_services::processes::{children, template};
use tempfile::TempDir;

use crate::support::{await_that, kill, Chance};

pub const COMPONENTS: [&str; 6] = ["event", "fs", "lock", "memory", "scheduler", "timer"];

/// A server, until this is dropped.
pub struct Web {
    child: Child,
    pub address: SocketAddr,
    pub root: TempDir,
}

impl Web {
    /// Serves these files.
    pub fn start(files: &[(String, Vec<u8>)], options: &[&str]) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        for (name, bytes) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
            std::fs::write(path, bytes).expect("a file");
        }
        let mut child = command(root.path()).args(options).stdout(Stdio::piped()).spawn().expect("the server");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        output.read_line(&mut line).expect("where it listens");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        Self { child, address, root }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// It runs no more; it is not waited for, so that this can be asked from anywhere.
    pub fn ended(&self) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    }

    /// Its exit status, once it has ended; -1: of a signal.
    pub fn status(&mut self) -> i32 {
        self.child.wait().expect("a child").code().unwrap_or(-1)
    }

    /// Ends it as a user does, and returns its exit status.
    pub fn stop(&mut self) -> i32 {
        kill(self.child.id(), libc::SIGTERM);
        self.status()
    }

    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// The template of a component: it is a child of the server, and stays.
    pub fn template(&self, component: &str) -> u32 {
        template(self.child.id(), component).unwrap_or_else(|| panic!("no {component}"))
    }

    /// Kills a component at random moments while `work` is going on, one of these each time; how often.
    pub fn while_killed<T>(
        &self,
        components: &[&str],
        chance: &mut Chance,
        work: impl FnOnce(&Kills) -> T,
    ) -> (T, u32) {
        let templates: Vec<u32> = components.iter().map(|component| self.template(component)).collect();
        let (over, kills) = (AtomicBool::new(false), Kills::default());
        std::thread::scope(|scope| {
            let (over, kills) = (&over, &kills);
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_micros(500 + chance.below(9_500)));
                    let template = templates[chance.below(templates.len() as u64) as usize];
                    let Some(instance) = children(template).first().copied() else { continue };
                    kill(instance, libc::SIGKILL);
                    // Until there is another one.
                    await_that(|| over.load(Ordering::SeqCst) || !children(template).contains(&instance));
                    kills.0.fetch_add(1, Ordering::SeqCst);
                }
            });
            // Also if the work panics: else nobody would ever hear of it.
            let ending = Ending(over);
            let result = work(kills);
            drop(ending);
            (result, kills.count())
        })
    }
}

#[derive(Default)]
pub struct Kills(std::sync::atomic::AtomicU32);

impl Kills {
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server's command, for a free port.
pub fn command(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast-web"));
    command.args(["--listen", "127.0.0.1:0", "--root"]).arg(root);
    command
}

/// A connection, and what has come there.
pub struct Client {
    pub socket: TcpStream,
    input: BufReader<TcpStream>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("a connection");
        let input = BufReader::new(socket.try_clone().expect("a descriptor"));
        Self { socket, input }
    }

    pub fn send(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).expect("a connection that stays");
    }

    pub fn ask(&mut self, path: &str) {
        self.send(&format!("GET /{path} HTTP/1.1\r\nHost: here\r\n\r\n"));
    }

    /// None: the server has closed the connection. `body`: one follows the head.
    pub fn answer(&mut self, body: bool) -> Option<Response> {
        let mut line = String::new();
        // What was sent and not read may have it reset.
        if self.input.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.input.read_line(&mut line).expect("a head");
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_string())),
                None => break,
            }
        }
        let mut response = Response { status, headers, body: Vec::new() };
        let length = response.header("content-length").map_or(0, |length| length.parse().expect("a number"));
        if body {
            response.body.resize(length, 0);
            self.input.read_exact(&mut response.body).expect("the whole body");
        }
        Some(response)
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.ask(path);
        self.answer(true).expect("a connection that stays")
    }
}

/// Bytes that no other file has, and that repeat nowhere soon.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Files of many sizes, around the borders of pieces and buffers, and with names of all kinds.
pub fn site() -> Vec<(String, Vec<u8>)> {
    let sizes = [0, 1, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 131_072, 1_000_000, 5_000_000];
    let sized = sizes.into_iter().map(|size| (format!("sizes/{size}"), bytes(size, size as u64)));
    let named = [
        ("index.html", b"<p>root".to_vec()),
        ("folder/index.html", b"<p>folder".to_vec()),
        ("folder/deep er/caf\u{e9}+&.txt", b"words".to_vec()),
        ("bare/picture.png", b"png".to_vec()),
    ];
    sized.chain(named.map(|(name, bytes)| (name.to_string(), bytes))).collect()
}
