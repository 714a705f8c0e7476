//! Table 9: a server is killed again and again while a client asks, and what the client sees of it.

use super::applications::library;
use super::results::Approach;
use super::throughput::Modules;
use super::web::Site;
use super::Extent;
use crate::evaluation::progress::Progress;
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::Side;
use crate::workshop::Workshop;
use fastrand::Rng;
use rustix::process::{kill_process, Signal};
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Restart,
    Dump,
    Checkpoint,
    Visible,
    Server,
}

/// No reply takes so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// One that a memory dump has lost does not come, however long one waits.
const PATIENCE_WITH_DUMP: Duration = Duration::from_millis(250);
/// Between memory dumps, and until the first one is there.
const DUMPS_MS: u64 = 2000;
const FIRST_DUMP: Duration = Duration::from_millis(DUMPS_MS + 500);
/// So often a connection is asked on: lighttpd ends one of its own accord after 65535 requests.
const REQUESTS: u64 = 10_000;
/// For the price of a request without kills: clients, and turns of both servers in each of the rounds.
const CLIENTS: u32 = 20;
const TURNS: usize = 4;
const TURN: Duration = Duration::from_secs(1);

impl Kind {
    pub const ALL: [Self; 5] = [Self::Restart, Self::Dump, Self::Checkpoint, Self::Visible, Self::Server];

    fn name(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Dump => "memory dump",
            Self::Checkpoint => "checkpoint",
            Self::Visible => "visible",
            Self::Server => "server",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Restart => "the server is started again when it has died",
            Self::Dump => "its memory is copied every two seconds, within its own process, and copied back when SIGSEGV is to end it",
            Self::Checkpoint => "a commit every two seconds",
            Self::Visible => "a commit before whatever others can see",
            Self::Server => "the same, but for replies, of which it is logged how much was sent",
        }
    }

    fn side(self) -> Side<'static> {
        match self {
            Self::Restart | Self::Dump => Side::Native,
            Self::Checkpoint => Modules::Checkpoint.side(),
            Self::Visible => Modules::Visible.side(),
            Self::Server => Modules::Server.side(),
        }
    }

    fn environment(self, workshop: &Workshop) -> Vec<(&'static str, OsString)> {
        match self {
            Self::Dump => library("dump", DUMPS_MS, workshop),
            _ => Vec::new(),
        }
    }

    /// How the server dies. Of who is killed by force nothing is left that could copy anything back.
    fn signal(self) -> Signal {
        match self {
            Self::Dump => Signal::SEGV,
            _ => Signal::KILL,
        }
    }

    fn patience(self) -> Duration {
        match self {
            Self::Dump => PATIENCE_WITH_DUMP,
            _ => PATIENCE,
        }
    }

    /// Is its state as it was a while ago, after a recovery?
    fn loses_replies(self) -> bool {
        matches!(self, Self::Restart | Self::Dump)
    }
}

fn kills(extent: Extent) -> usize {
    extent.of(200, 6)
}

/// Tenths of a second that one approach takes.
pub fn tenths(extent: Extent) -> u64 {
    kills(extent) as u64 / 2 + extent.of(5, 1) as u64 * (extent.of(TURNS, 1) as u64 * 2 + 2) * 10
}

pub fn measure(kind: Kind, extent: Extent, workshop: &Workshop, progress: &Progress) -> Approach {
    let mut approach =
        Approach { name: kind.name().into(), what: kind.what().into(), seed: extent.seed, ..Approach::default() };
    progress.say(format!("Table 9, {}", kind.name()));
    let all = price(kind, extent, &mut approach, workshop, progress)
        .and_then(|()| kill_again_and_again(kind, extent, &mut approach, workshop, progress));
    approach.obstacle = all.err().map(|failure| failure.to_string());
    approach
}

fn price(kind: Kind, extent: Extent, approach: &mut Approach, workshop: &Workshop, progress: &Progress) -> Outcome<()> {
    if kind == Kind::Restart {
        return Ok(());
    }
    for number in 0..extent.of(5, 1) {
        let site = Site::make(workshop, extent.seed)?;
        let mut native = site.serve(workshop, Side::Native, &[])?;
        let mut ours = site.serve(workshop, kind.side(), &kind.environment(workshop))?;
        let mut load = |of_ours: bool| -> Outcome<f64> {
            let server = if of_ours { &mut ours } else { &mut native };
            let used = server.load(workshop, CLIENTS, TURN, extent.seed)?.0.processor_us;
            progress.passed(TURN);
            Ok(used)
        };
        // Sites of system calls are rewritten in the first instants.
        load(false)?;
        load(true)?;
        // In turn: whatever changes on the machine concerns both.
        for turn in 0..extent.of(TURNS, 1) {
            approach.pairs_us.push(match (number + turn) % 2 {
                0 => [load(false)?, load(true)?],
                _ => {
                    let first = load(true)?;
                    [load(false)?, first]
                }
            });
        }
        native.end()?;
        ours.end()?;
    }
    Ok(())
}

/// A client with one connection, which it opens anew when that is broken.
struct Client<'a> {
    site: &'a Site,
    port: u16,
    patience: Duration,
    connection: Option<TcpStream>,
    random: Rng,
    /// What it was told when its connection broke.
    told: String,
    asked: u64,
}

/// What a request came to.
#[derive(PartialEq, Eq)]
enum Reply {
    Right,
    Wrong,
    Broken,
}

impl Client<'_> {
    /// Asks for any page, and tells which.
    fn ask(&mut self) -> Option<usize> {
        let page = self.random.usize(0..self.site.pages.len());
        self.told = "cannot ask".into();
        self.asked += 1;
        if self.asked % REQUESTS == 0 {
            self.connection = None;
        }
        if self.connection.is_none() {
            let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
            connection.set_read_timeout(Some(self.patience)).ok()?;
            self.connection = Some(connection);
        }
        let request = format!("GET /p{page}.html HTTP/1.1\r\nHost: here\r\n\r\n");
        self.connection.as_mut()?.write_all(request.as_bytes()).ok()?;
        Some(page)
    }

    /// Reads the reply, which must be all that comes.
    fn hear(&mut self, page: usize) -> Reply {
        let Some(connection) = self.connection.as_mut() else { return Reply::Broken };
        let (mut text, mut part) = (Vec::new(), [0; 65536]);
        loop {
            match connection.read(&mut part) {
                Ok(0) => {
                    self.told = format!("end after {} bytes", text.len());
                    return Reply::Broken;
                }
                Ok(count) => text.extend(&part[..count]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Reply::Wrong,
                Err(e) => {
                    self.told = format!("{e} after {} bytes", text.len());
                    return Reply::Broken;
                }
            }
            let Some(head) = text.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let header = String::from_utf8_lossy(&text[..head]);
            let length = header.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
            let Some(length) = length.filter(|_| header.starts_with("HTTP/1.1 200 ")) else { return Reply::Wrong };
            if text.len() >= head + 4 + length {
                let right = text[head + 4..] == self.site.pages[page][..];
                return if right { Reply::Right } else { Reply::Wrong };
            }
        }
    }

    /// One request and its reply; whatever is not right ends the connection.
    fn take(&mut self, page: Option<usize>) -> Reply {
        let reply = page.map_or(Reply::Broken, |page| self.hear(page));
        if reply != Reply::Right {
            self.connection = None;
        }
        reply
    }
}

impl Approach {
    fn broke(&mut self, kind: Kind, client: &Client, reply: &Reply, when: &str) {
        if *reply == Reply::Broken && !kind.loses_replies() {
            self.breaks.push(format!("{when}: {}", client.told));
        }
    }

    /// What clients saw of a kill: something broken, something wrong.
    fn count(&mut self, seen: &mut [bool; 2]) {
        self.broken += usize::from(seen[0]);
        self.wrong += usize::from(seen[1]);
        *seen = [false; 2];
    }
}

fn kill_again_and_again(
    kind: Kind,
    extent: Extent,
    approach: &mut Approach,
    workshop: &Workshop,
    progress: &Progress,
) -> Outcome<()> {
    let site = Site::make(workshop, extent.seed)?;
    let mut server = site.serve(workshop, kind.side(), &kind.environment(workshop))?;
    if kind == Kind::Dump {
        std::thread::sleep(FIRST_DUMP);
    }
    let port = server.port;
    let mut client = Client {
        site: &site,
        port,
        patience: kind.patience(),
        connection: None,
        random: Rng::with_seed(extent.seed),
        told: String::new(),
        asked: 0,
    };
    let mut seen = [false; 2];
    for number in 0..kills(extent) {
        let until = Instant::now() + Duration::from_micros(client.random.u64(2_000..60_000));
        while Instant::now() < until {
            let page = client.ask();
            // What was sent once more may come late, and belongs to the kill before.
            match client.take(page) {
                Reply::Right => (),
                _ if number == 0 => return Err(Failure::Unreadable("lighttpd".into(), "a wrong reply".into())),
                reply => {
                    seen[usize::from(reply == Reply::Wrong)] = true;
                    approach.broke(kind, &client, &reply, "later");
                }
            }
        }
        approach.count(&mut seen);
        // Every other time a request is on its way.
        let mut asked = if client.random.bool() { Some(client.ask()) } else { None };
        let killed = Instant::now();
        kill_process(server.running.program_pid()?, kind.signal()).tried("kill the server")?;
        if kind == Kind::Restart {
            server.running.wait()?;
            server = site.serve_at(workshop, port)?;
        }
        loop {
            let page = asked.take().unwrap_or_else(|| client.ask());
            match client.take(page) {
                Reply::Right => break,
                reply => {
                    seen[usize::from(reply == Reply::Wrong)] = true;
                    approach.broke(kind, &client, &reply, "at once");
                }
            }
            if killed.elapsed() > PATIENCE * 4 {
                return Err(Failure::TooLong("a reply after a kill".into(), (PATIENCE * 4).as_secs()));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        approach.recoveries_ms.push(killed.elapsed().as_secs_f64() * 1e3);
        progress.passed(Duration::from_millis(50));
    }
    approach.count(&mut seen);
    server.end()
}
