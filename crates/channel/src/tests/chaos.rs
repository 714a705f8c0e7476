//! A wire that is cut, frozen and spoilt at random moments, and a node that ends and begins anew: what is answered is right, what is not has an
//! error, and in the end all goes on.

use super::{add, anywhere, until, Client, Server, LONG};
use crate::{Key, News};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Between the two.
#[derive(Default)]
struct Wire {
    to: Mutex<Option<SocketAddr>>,
    is_frozen: AtomicBool,
    spoils: AtomicBool,
    /// Whoever was connected before is not any more.
    epoch: AtomicU32,
    has_ended: AtomicBool,
}

impl Wire {
    fn lay() -> (Arc<Self>, SocketAddr) {
        let this = Arc::new(Self::default());
        let listener = TcpListener::bind(anywhere()).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let wire = Arc::clone(&this);
        std::thread::spawn(move || {
            while !wire.has_ended.load(Relaxed) {
                match listener.accept() {
                    Ok((from, _)) => wire.connect(from),
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        (this, address)
    }

    fn connect(self: &Arc<Self>, from: TcpStream) {
        let to = *self.to.lock().unwrap();
        let Some(to) = to.and_then(|to| TcpStream::connect(to).ok()) else { return };
        let ways = [(from.try_clone().unwrap(), to.try_clone().unwrap()), (to, from)];
        for (from, to) in ways {
            let wire = Arc::clone(self);
            let epoch = self.epoch.load(Relaxed);
            std::thread::spawn(move || wire.carry(from, to, epoch));
        }
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream, epoch: u32) {
        from.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut bytes = [0; 4096];
        while !self.has_ended.load(Relaxed) && self.epoch.load(Relaxed) == epoch {
            if self.is_frozen.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
            match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => {
                    if self.spoils.swap(false, Relaxed) {
                        bytes[count / 2] ^= 0x40;
                    }
                    if to.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => (),
                Err(_) => break,
            }
        }
        for stream in [from, to] {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

#[test]
fn whatever_happens_to_the_wire_answers_are_right_and_all_goes_on_in_the_end() {
    let (seeds, blows) = (4u64, 25);
    for seed in 1..=seeds {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let (own, other) = (Key::transient().unwrap(), Key::transient().unwrap());
        let begin = || Server::begin(&own, anywhere(), &[("here", other.public(), &["adder"])]);
        let mut server = Some(begin());
        let (wire, address) = Wire::lay();
        *wire.to.lock().unwrap() = server.as_ref().map(Server::address);
        let client = Client::begin(&other, address, own.public());
        let remote = client.remote();
        remote.use_pin("adder");
        remote.want_event("adder", "added", true);
        client.returned();
        let (mut answered, mut failed) = (0, 0);
        for n in 0..blows {
            // Mostly it has come back, and sometimes the next blow comes first.
            if random.u64(..4) > 0 {
                until(&format!("seed {seed}: it comes back"), || add(&remote, n, seed) == Ok(n + seed));
                answered += 1;
            }
            match random.u64(..5) {
                0 => drop(wire.epoch.fetch_add(1, Relaxed)),
                1 => {
                    wire.is_frozen.store(true, Relaxed);
                    std::thread::sleep(Duration::from_millis(random.u64(..900)));
                    wire.is_frozen.store(false, Relaxed);
                }
                2 => wire.spoils.store(true, Relaxed),
                3 => {
                    *wire.to.lock().unwrap() = None;
                    server.take().map(Server::end);
                    std::thread::sleep(Duration::from_millis(random.u64(..600)));
                    server = Some(begin());
                    *wire.to.lock().unwrap() = server.as_ref().map(Server::address);
                }
                _ => std::thread::sleep(Duration::from_millis(random.u64(..60))),
            }
            let began = Instant::now();
            match add(&remote, n, seed) {
                Ok(sum) => {
                    assert_eq!(sum, n + seed);
                    answered += 1;
                }
                Err(_) => failed += 1,
            }
            // A call has an end: a patience, and whatever a busy machine adds.
            assert!(began.elapsed() < LONG / 3, "seed {seed}");
        }
        // It is told anew what is wanted of it, once.
        until(&format!("seed {seed}: it goes on"), || add(&remote, 1000, seed) == Ok(1000 + seed));
        while client.news.within(Duration::from_millis(100)).is_some() {}
        // On a busy machine either may have been silent for too long since.
        until(&format!("seed {seed}: it goes on still"), || add(&remote, 2000, seed) == Ok(2000 + seed));
        let told = client.hear("an event", |news| if let News::Told { told, .. } = news { Some(told) } else { None });
        assert_eq!(told.payload.read(), Ok(2000 + seed), "seed {seed}");
        println!("seed {seed}: {answered} answered, {failed} failed");
        assert!(answered > 0, "seed {seed}");
        wire.has_ended.store(true, Relaxed);
        drop(client);
        server.map(Server::end);
    }
}
