//! Addresses that are watched in programs that are killed, at chosen moments and at random ones.

use crate::run::Run;
use serde_json::{json, Value};
use std::time::Duration;

pub const WRITES: &str = "v = ctypes.c_long(0); write = lambda n: [setattr(v, 'value', k) for k in range(n)] and None";

fn hits(run: &Run, watch: &Value) -> u64 {
    let hits = run.told("hit");
    hits.iter().rev().find(|hit| hit["watch"] == *watch).map_or(0, |hit| hit["total"].as_u64().unwrap())
}

pub fn writes() {
    let mut run = Run::start();
    run.say(WRITES);
    let address: u64 = run.ask("ctypes.addressof(v)").parse().unwrap();
    let watch = run.probe(&json!({ "what": "watch", "address": address, "length": 8 }));
    assert!(watch.is_u64(), "{watch}");
    let mut total = 0;
    for round in 0..10 {
        assert_eq!(run.ask("write(1000)"), "None");
        total += 1000;
        run.until("the hits", || hits(&run, &watch) >= total);
        assert_eq!(hits(&run, &watch), total, "{round}");
        let life = || run.seen("file")["look"]["life"].as_u64();
        let before = life();
        run.kill();
        // Some look has been made at the process that goes on, which may have the number of the one before: by then it is followed.
        run.until("a look", || life() > before);
        run.probe(&json!({ "what": "pipes" }));
    }
    assert_eq!(run.probe(&json!({ "what": "unwatch", "watch": watch })), "unwatched");
    assert_eq!(run.ask("write(1000)"), "None");
    run.probe(&json!({ "what": "pipes" }));
    assert_eq!(hits(&run, &watch), total);
    run.end();
}

pub fn executions() {
    let mut run = Run::start();
    run.say("libc = ctypes.CDLL(None); f = libc.labs");
    run.say("many = lambda: [f(-n) for n in range(300)] and None");
    let address: u64 = run.ask("ctypes.cast(f, ctypes.c_void_p).value").parse().unwrap();
    let watch = run.probe(&json!({ "what": "watch", "address": address, "length": 8, "execute": true }));
    assert!(watch.is_u64(), "{watch}");
    run.say("ts = [threading.Thread(target=many) for n in range(4)]; [t.start() for t in ts]; [t.join() for t in ts]; many()");
    assert_eq!(run.ask("1"), "1");
    run.until("the hits", || hits(&run, &watch) >= 1500);
    assert_eq!(hits(&run, &watch), 1500);
    run.end();
}

/// What a program does that all pins have something to see of, a line for each round.
const WORKS: &str =
    "l = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(l.getsockname()); s = l.accept()[0]
def work(k):
 a, b = os.pipe(); os.write(b, b'%d' % k); os.close(b)
 c.sendall(b'%d' % k); write(100); kept = [bytearray(100000) for n in range(10)]
 t = threading.Thread(target=write, args=(50,)); t.start(); t.join()
 got = os.read(a, 9) + os.read(a, 9); os.close(a)
 print(k, got, s.recv(9), v.value, len(kept))
";

/// `OUTLAST_SEED` and `OUTLAST_KILLS` repeat or lengthen it.
pub fn unseen() {
    let of = |name: &str, else_| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(else_);
    let (mut seed, kills): (u64, u64) = (of("OUTLAST_SEED", 1), of("OUTLAST_KILLS", 25));
    eprintln!("seed {seed}");
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    let mut run = Run::start();
    run.say(WRITES);
    run.say(&format!("exec({WORKS:?})"));
    let address: u64 = run.ask("ctypes.addressof(v)").parse().unwrap();
    assert!(run.probe(&json!({ "what": "watch", "address": address, "length": 8 })).is_u64());
    for k in 0..kills {
        let rounds = 20;
        run.say(&format!("[work({k} * {rounds} + n) for n in range({rounds})]"));
        std::thread::sleep(Duration::from_micros(random(15_000)));
        run.kill();
        for n in 0..rounds {
            let round = k * rounds + n;
            assert_eq!(run.hear(), format!("{round} b'{round}' b'{round}' 49 10"));
        }
    }
    assert!(run.told("hit").len() as u64 > kills / 2, "it was watched meanwhile");
    run.end();
}
