//! Reads what a process prints, by a thread of its own, up to a bound.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::time::Duration;

/// More than that is a flood, which counts as a hang.
const MOST: usize = 64 << 20;
/// How long to wait for the end of what a process printed that has ended: somebody else may have its pipe.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    flood: Arc<AtomicBool>,
    done: mpsc::Receiver<()>,
}

impl Capture {
    pub fn of(mut from: impl Read + Send + 'static) -> Self {
        let (bytes, flood) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (sender, done) = mpsc::channel();
        let (kept, flooded) = (bytes.clone(), flood.clone());
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                match kept.len() + n > MOST {
                    true => flooded.store(true, Relaxed),
                    false => kept.extend_from_slice(&buffer[..n]),
                }
            }
            let _ = sender.send(());
        });
        Self { bytes, flood, done }
    }

    pub fn is_flood(&self) -> bool {
        self.flood.load(Relaxed)
    }

    /// All of it, once the process has ended.
    pub fn end(self) -> Vec<u8> {
        let _ = self.done.recv_timeout(PATIENCE);
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
