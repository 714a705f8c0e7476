//! The emulated screen of a terminal, kept up to date by a reading thread.

use std::fs::File;
use std::io::Read;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::diagnosis;

/// Screen and raw output of a terminal.
pub struct Screen {
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    emulator: vt100::Parser,
    raw: Vec<u8>,
    /// The last user of the terminal is gone.
    ended: bool,
    at: Instant,
}

impl Screen {
    pub fn new(rows: u16, columns: u16) -> Screen {
        Screen {
            inner: Mutex::new(Inner {
                emulator: vt100::Parser::new(rows, columns, 0),
                raw: Vec::new(),
                ended: false,
                at: Instant::now(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Reads the master side until the last user of the terminal is gone.
    pub fn follow(&self, mut master: File) {
        let mut buffer = [0; 16_384];
        loop {
            // EIO is how a terminal without users says end of file.
            let n = master.read(&mut buffer).unwrap_or(0);
            let mut inner = self.lock();
            inner.raw.extend_from_slice(&buffer[..n]);
            inner.emulator.process(&buffer[..n]);
            inner.ended = n == 0;
            inner.at = Instant::now();
            diagnosis::note("screen", format!("\n{}", text(&inner)));
            drop(inner);
            self.changed.notify_all();
            if n == 0 {
                return;
            }
        }
    }

    /// Waits until the screen, as text, satisfies `wanted`; gives the last screen as an error if the terminal ended.
    pub fn wait_until(&self, wanted: impl Fn(&str) -> bool) -> Result<String, String> {
        let mut inner = self.lock();
        loop {
            let now = text(&inner);
            if wanted(&now) {
                return Ok(now);
            }
            if inner.ended {
                return Err(now);
            }
            inner = self.changed.wait(inner).expect("nobody panics while holding the screen");
        }
    }

    /// The screen once nothing was printed for `quiet`, counted from now on.
    pub fn settle(&self, quiet: Duration) -> String {
        let mut inner = self.lock();
        let asked = Instant::now();
        while !inner.ended && inner.at.max(asked).elapsed() < quiet {
            let left = quiet.saturating_sub(inner.at.max(asked).elapsed());
            inner = self.changed.wait_timeout(inner, left).expect("nobody panics while holding the screen").0;
        }
        text(&inner)
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        self.lock().emulator.screen_mut().set_size(rows, columns);
    }

    /// Everything that was printed.
    pub fn raw(&self) -> Vec<u8> {
        self.lock().raw.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics while holding the screen")
    }
}

/// Contents, cursor and modes: what a person sees.
fn text(inner: &Inner) -> String {
    let screen = inner.emulator.screen();
    let (row, column) = screen.cursor_position();
    let hidden = if screen.hide_cursor() { " hidden" } else { "" };
    let mut text = String::new();
    for line in screen.rows(0, screen.size().1) {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let trimmed = text.trim_end().len();
    text.truncate(trimmed);
    format!("{text}\n[cursor {row},{column}{hidden}; {}]", attributes(screen))
}

/// A digest of colours and attributes, so that a screen whose letters are right and whose colours are not differs.
fn attributes(screen: &vt100::Screen) -> String {
    let (rows, columns) = screen.size();
    let mut bold = 0u32;
    let mut inverse = 0u32;
    let mut coloured = 0u32;
    for cell in (0..rows).flat_map(|r| (0..columns).filter_map(move |c| screen.cell(r, c))) {
        bold += u32::from(cell.bold());
        inverse += u32::from(cell.inverse());
        coloured += u32::from(cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default);
    }
    format!("{bold} bold, {inverse} inverse, {coloured} coloured")
}
