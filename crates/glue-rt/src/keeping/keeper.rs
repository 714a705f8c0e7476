//! The manager's side: a thread in which modules decide about all components of a system, and which tells what happens.

use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use outlast_core::{Failure, Notice, Payload};
use outlast_interfaces::comp::{self, Decision};
use outlast_interfaces::hang::OfComponent;

use super::line::{answer, pair, receive, send, Letter, Line, Verdict, Word, VARIABLE};
use super::{Happened, Judge, Keeping, Tell};
use crate::system::{Part, SystemError};

/// For so long the end of a system waits until all that happened is told; a module that never returns must not keep it.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub struct Keeper {
    /// To which letters go: each template has a copy.
    socket: OwnedFd,
    hang: OfComponent,
    shared: Arc<Shared>,
    over: Mutex<Option<Receiver<()>>>,
}

#[derive(Default)]
struct Shared {
    parts: Mutex<Vec<Weak<Part>>>,
    /// Why a module has ended the system.
    ended: Mutex<Option<String>>,
}

impl Keeper {
    /// Returns when the modules are loaded.
    pub fn start(keeping: Keeping) -> Result<Self, SystemError> {
        let [from, socket] = pair()?;
        let (hang, shared) = (keeping.hang, Arc::new(Shared::default()));
        let (kept, (loaded, is_loaded), (done, over)) = (shared.clone(), channel(), channel());
        // A microkernel belongs to the thread that made it.
        std::thread::spawn(move || keep(&from, keeping, &kept, &loaded, &done));
        match is_loaded.recv() {
            Ok(Ok(())) => Ok(Self { socket, hang, shared, over: Mutex::new(Some(over)) }),
            Ok(Err(why)) => Err(SystemError::Module(why)),
            Err(_) => Err(SystemError::Module("the thread that loads modules ended".into())),
        }
    }

    /// Another component; its number.
    pub fn add(&self, part: Weak<Part>) -> u32 {
        let mut parts = lock(&self.shared.parts);
        parts.push(part);
        parts.len() as u32 - 1
    }

    /// Has a template that is about to be started write letters; the descriptor is to be inherited.
    pub fn pass(&self, command: &mut Command, component: u32) -> i32 {
        let socket = self.socket.as_raw_fd();
        command.env(VARIABLE, Line::text(socket, component, self.hang));
        socket
    }

    pub fn tell(&self, component: u32, happened: Happened) {
        send(&self.socket, &Letter { component, word: Word::Happened(happened) });
    }

    /// Why a module has ended the system, if one has.
    pub fn ended(&self) -> Option<String> {
        lock(&self.shared.ended).clone()
    }

    /// Nothing more happens: returns when all is told.
    pub fn end(&self) {
        // SAFETY: plain call. What was sent before is still received.
        unsafe { libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_WR) };
        if let Some(over) = lock(&self.over).take() {
            let _ = over.recv_timeout(LAST_WORDS);
        }
    }
}

impl Shared {
    fn part(&self, component: u32) -> Option<Arc<Part>> {
        lock(&self.parts).get(component as usize)?.upgrade()
    }

    /// All components are given up, for this reason.
    fn end(&self, why: &str) {
        lock(&self.ended).get_or_insert(why.into());
        lock(&self.parts).iter().filter_map(Weak::upgrade).for_each(|part| part.end());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread.
fn keep(from: &OwnedFd, keeping: Keeping, shared: &Shared, loaded: &Sender<Result<(), String>>, done: &Sender<()>) {
    let Keeping { modules, tell, .. } = keeping;
    let mut teller = Teller(tell);
    let mut judge = match Judge::new(&modules) {
        Ok(judge) => judge,
        Err(failure) => {
            let _ = loaded.send(Err(failure.to_string()));
            return;
        }
    };
    let _ = loaded.send(Ok(()));
    while let Some(Letter { component, word }) = receive(from) {
        let Some(part) = shared.part(component) else { continue };
        let name = part.name();
        match word {
            Word::Asked(number, death) => {
                let decision = judge.decide(name, &death);
                let verdict = match decision {
                    Some(Decision::Reboot) => Verdict::Reboot,
                    Some(Decision::GiveUp(_) | Decision::End(_)) => Verdict::GiveUp,
                    None => Verdict::Nobody,
                };
                // Before anything is told: clients wait.
                answer(part.verdict(), number, verdict);
                teller.tell(name, &Happened::Died(death));
                if let Some(Decision::GiveUp(why) | Decision::End(why)) = &decision {
                    judge.raise(name, comp::GIVEN_UP, Payload::NONE);
                    teller.tell(name, &Happened::GivenUp(why.clone()));
                }
                if let Some(Decision::End(why)) = &decision {
                    shared.end(why);
                }
            }
            Word::Happened(happened) => {
                let told = match &happened {
                    Happened::Begun(_) => judge.protect(name),
                    Happened::Hung(_, hang) => raise(&mut judge, name, comp::HUNG, Payload::of(hang)),
                    Happened::Serves(serves) => raise(&mut judge, name, comp::SERVES, Payload::of(serves)),
                    Happened::GivenUp(_) => raise(&mut judge, name, comp::GIVEN_UP, Ok(Payload::NONE)),
                    _ => Ok(()),
                };
                teller.tell(name, &happened);
                if let Err(failure) = told {
                    teller.tell(name, &Happened::ModuleFailed(failure.to_string()));
                }
            }
        }
        for notice in judge.notices() {
            let happened = match notice {
                Notice::Said { module, what } => Happened::ModuleSaid(format!("{module}: {what}")),
                failure => Happened::ModuleFailed(failure.to_string()),
            };
            teller.tell(name, &happened);
        }
    }
    // It may have something to give back, a name say.
    drop(teller);
    let _ = done.send(());
}

type Told<T> = Result<T, Failure>;

fn raise(judge: &mut Judge, component: &str, event: &'static str, payload: Told<Payload>) -> Told<()> {
    judge.raise(component, event, payload?);
    Ok(())
}

struct Teller(Option<Box<dyn Tell>>);

impl Teller {
    fn tell(&mut self, component: &str, happened: &Happened) {
        if let Some(tell) = &mut self.0 {
            tell.tell(component, happened);
        }
    }
}
