//! The screen: taken, given back on every way out, and what happens in between.

use super::draw::{draw, Theme};
use super::inspect;
use super::keys::Wish;
use super::sample::Sampler;
use super::view::{Mode, View};
use super::Top;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event, KeyEventKind};
use crossterm::execute;
use crossterm::terminal::{
    disable_raw_mode, enable_raw_mode, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen,
};
use nix::sys::signal::{raise, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use outlast_supervisor::Error;
use ratatui::backend::CrosstermBackend;
use ratatui::{DefaultTerminal, Terminal};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io::{stdin, stdout};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Those that end it, and those that have to do with its terminal.
const SIGNALS: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
    Signal::SIGCONT,
    Signal::SIGWINCH,
];
/// How often it looks whether an act has come to its end.
const PULSE: Duration = Duration::from_millis(100);

/// The terminal, ours as long as this lives.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> Result<Self, Error> {
        // Also has a panic give it back before it is told of.
        ratatui::try_init().map(Self).map_err(Error::Output)
    }

    /// Gives it back, stops, and takes it again when it is continued.
    fn suspend(&mut self) -> Result<(), Error> {
        give_back();
        // Stops here; a terminal's own key would have stopped it in the same way.
        let _ = raise(Signal::SIGSTOP);
        self.take_again()
    }

    /// The shell may have set it up otherwise meanwhile.
    fn take_again(&mut self) -> Result<(), Error> {
        let _ = disable_raw_mode();
        enable_raw_mode().map_err(Error::Output)?;
        execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All), Hide).map_err(Error::Output)?;
        // One that takes nothing to be on the screen; to clear the other one asks the terminal, which need not answer.
        self.0 = Terminal::new(CrosstermBackend::new(stdout())).map_err(Error::Output)?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// A terminal that is gone needs nothing.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}

/// How it ended.
enum Left {
    Quit,
    Signal(Signal),
}

pub fn run(sampler: Sampler, top: &Top) -> Result<i32, Error> {
    let kernel =
        |e: nix::errno::Errno| Error::Kernel("receive signals", rustix::io::Errno::from_raw_os_error(e as i32));
    let wanted = SigSet::from_iter(SIGNALS);
    let before = wanted.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK).map_err(kernel)?;
    let signals = SignalFd::with_flags(&wanted, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(kernel)?;
    let left = watch(sampler, top, &signals);
    let _ = before.thread_set_mask();
    match left? {
        Left::Quit => Ok(0),
        Left::Signal(signal) => {
            // It ends by it, as whoever sent it expects.
            let _ = raise(signal);
            Ok(128 + signal as i32)
        }
    }
}

fn watch(mut sampler: Sampler, top: &Top, signals: &SignalFd) -> Result<Left, Error> {
    let mut view = View::new(top.sort, top.reverse, top.filter.clone(), top.delay);
    let theme = Theme::wanted();
    let mut screen = Screen::take()?;
    let (tell, told) = mpsc::channel();
    let mut acting = 0;
    let (mut due, mut looks) = (Instant::now(), 0);
    loop {
        if Instant::now() >= due {
            view.set(sampler.look()?);
            due = Instant::now() + view.delay;
            looks += 1;
        }
        if let (Mode::Inspect(_), Some(row)) = (&view.mode, view.row()) {
            view.lines = inspect::lines(row, &sampler);
        }
        screen.0.draw(|frame| draw(frame, &view, theme)).map_err(Error::Output)?;
        if top.iterations.is_some_and(|count| looks >= count) {
            return Ok(Left::Quit);
        }
        let mut patience = due.saturating_duration_since(Instant::now());
        if acting > 0 {
            patience = patience.min(PULSE);
        }
        let stdin = stdin();
        let mut files = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        // Whatever ends the wait, everything is looked at.
        let _ = poll(&mut files, Some(&timeout));
        let is_gone = files[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        while let Ok(Some(info)) = signals.read_signal() {
            match Signal::try_from(info.ssi_signo as i32) {
                Ok(Signal::SIGWINCH) => (),
                Ok(Signal::SIGTSTP) => screen.suspend()?,
                Ok(Signal::SIGCONT) => screen.take_again()?,
                Ok(signal) => return Ok(Left::Signal(signal)),
                Err(_) => (),
            }
        }
        if is_gone {
            return Ok(Left::Quit);
        }
        while let Ok(said) = told.try_recv() {
            acting -= 1;
            view.said = Some(said);
            due = Instant::now();
        }
        while event::poll(Duration::ZERO).map_err(Error::Output)? {
            let Event::Key(key) = event::read().map_err(Error::Output)? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match view.press(key) {
                Wish::Nothing => (),
                Wish::Quit => return Ok(Left::Quit),
                Wish::Suspend => screen.suspend()?,
                Wish::Look => due = Instant::now(),
                Wish::Do(act, name) => {
                    view.said = Some("…".into());
                    acting += 1;
                    act.begin(name, tell.clone());
                }
            }
        }
    }
}
