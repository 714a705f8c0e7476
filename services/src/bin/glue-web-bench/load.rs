//! Clients that ask for a page without pause, each for one at a time, and compare what comes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Nobody waits longer for an answer: then it has failed. On a busy machine an answer may take half a minute.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Site<'a> {
    pub address: SocketAddr,
    /// What the target of all requests names.
    pub page: &'a [u8],
}

#[derive(Clone, Debug, Default)]
pub struct Load {
    /// When each right answer was there, in nanoseconds since the beginning, in order.
    pub done: Vec<u64>,
    pub failed: u64,
    /// Why the first of some client did.
    pub why: Option<String>,
}

/// So many clients at once for so long; `keep`: on connections that stay, else on a new one for each request, as ab does.
pub fn ask(site: &Site<'_>, clients: usize, keep: bool, length: Duration) -> Load {
    let (start, over) = (Instant::now(), AtomicBool::new(false));
    let mut load = std::thread::scope(|scope| {
        let over = &over;
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(move || client(site, keep, start, over))).collect();
        std::thread::sleep(length);
        over.store(true, Ordering::SeqCst);
        let each = all.into_iter().map(|client| client.join().unwrap_or_default());
        each.fold(Load::default(), |mut all, one| {
            all.done.extend(one.done);
            all.failed += one.failed;
            all.why = all.why.or(one.why);
            all
        })
    });
    load.done.sort_unstable();
    load
}

fn client(site: &Site<'_>, keep: bool, start: Instant, over: &AtomicBool) -> Load {
    let mut load = Load::default();
    let mut connection: Option<TcpStream> = None;
    while !over.load(Ordering::SeqCst) {
        let answered = connection.take().map_or_else(|| connect(site.address), Ok).and_then(|mut socket| {
            let right = request(&mut socket, site.page, keep)?;
            Ok((socket, right))
        });
        match answered {
            Ok((socket, true)) => {
                load.done.push(start.elapsed().as_nanos() as u64);
                connection = keep.then_some(socket);
            }
            outcome => {
                load.failed += 1;
                let when = start.elapsed();
                load.why.get_or_insert_with(|| match outcome {
                    Err(error) => format!("after {when:.1?}: {error}"),
                    Ok(_) => format!("after {when:.1?}: another answer than the page"),
                });
                // Where there is nobody, not all time goes into asking.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    load
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// False: it is not the page.
fn request(socket: &mut TcpStream, page: &[u8], keep: bool) -> io::Result<bool> {
    let connection = if keep { "keep-alive" } else { "close" };
    let text = format!("GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n");
    socket.write_all(text.as_bytes())?;
    let mut bytes = vec![0; page.len() + 4096];
    let mut count = 0;
    loop {
        let got = socket.read(&mut bytes[count..])?;
        if got == 0 {
            return Ok(false);
        }
        count += got;
        let Some(end) = bytes[..count].windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let body = &bytes[end + 4..count];
        if body.len() >= page.len() {
            return Ok(bytes.starts_with(b"HTTP/1.1 200 ") && body == page);
        }
    }
}
