//! Modules that are added, removed and told otherwise while the program runs: what the supervisor does about a person's wish, of which
//! [`wishing`](crate::wishing) is the other side.
//!
//! What counts is the program's description, which is replaced in one stroke: before that all is as it was, after it the change is
//! made, whoever watches. The wish has a number and stays until it is answered, so that a supervisor that takes over knows whether it was
//! granted, and grants it if nobody had begun to. Whoever had begun and is gone may have been led astray by a module: that is not tried
//! again but by who asks.

use crate::again;
use crate::decision::{Added, Change, Changed};
use crate::exec::Handover;
use crate::log::{self, Entry, Kind};
use crate::meta::Made;
use crate::probes::Probes;
use crate::program_folder::ProgramFolder;
use crate::supervisor::Supervisor;
use crate::wish::write;
use crate::wishing::{self, Answer, Outcome, Wish, ANSWER, BEGUN, PARTS, UNFINISHED_ANSWER, UNFINISHED_PARTS, WISH};
use outlast_image::control::state;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

impl Supervisor {
    /// Sees to a wish, if there is one and nothing else is under way.
    pub(crate) fn on_wish_to_change(&mut self) {
        let is_settled = matches!(self.handover, Handover::None)
            && self.recovering.is_none()
            && self.postponed.is_none()
            && self.pid > 0
            && self.generation.control().state.load(Acquire) != state::STARTING;
        if !is_settled {
            return;
        }
        if self.folder.has(BEGUN) {
            self.finish_change();
        }
        if self.folder.has(WISH) && self.folder.rename(WISH, BEGUN).is_ok() {
            self.change();
        }
    }

    fn change(&mut self) {
        let Some(Wish { number, change }) = wishing::decoded(&self.folder, BEGUN) else {
            // Of another outlast, or of nobody who waits.
            self.folder.remove(BEGUN);
            return;
        };
        let outcome = match self.make_change(number, &change) {
            Ok(()) => Outcome::Done,
            Err(why) => Outcome::Refused(why),
        };
        self.log_failures();
        self.tell_parts();
        self.answer(number, outcome);
    }

    fn make_change(&mut self, number: u64, change: &Change) -> Result<(), String> {
        if self.generation.control().state.load(Acquire) != state::PROTECTED {
            return Err("it is not protected just now; `outlast log` says why".into());
        }
        let probes = self.wanted_probes(change)?;
        let Changed { options, what } = self.decides.change(change, &self.meta.options)?;
        let before = std::mem::replace(&mut self.meta.options, options);
        let made = self.meta.changed.replace(Made { wish: number, what });
        if let Err(e) = self.meta.write(&self.folder, &self.stores) {
            // The one that is written counts.
            let undone = self.decides.restore(&before);
            (self.meta.options, self.meta.changed) = (before, made);
            return Err(undone.err().map_or(e.to_string(), |worse| format!("{e}; and {worse}")));
        }
        if let Change::Add(_) = change {
            self.forgive();
        }
        if before.generations != self.meta.options.generations {
            self.keep_otherwise();
        }
        if before.sections != self.meta.options.sections {
            self.looking.probe_with(probes, self.pid);
        }
        self.tell_engine();
        self.log_change();
        Ok(())
    }

    /// Breakpoints at the functions that are to be code sections, if they are others than before.
    fn wanted_probes(&self, change: &Change) -> Result<Option<Probes>, String> {
        match change {
            Change::Add(Added::Hang { sections: Some(sections), .. })
                if !sections.is_empty() && *sections != self.meta.options.sections =>
            {
                Probes::begin(sections, Path::new(&format!("/proc/{}/exe", self.pid))).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A module that a person has added is as good as new, however it failed before.
    fn forgive(&mut self) {
        let is_loaded = self.decides.parts().modules;
        let of = |failure: &str| failure.split_once('=').map(|(module, _)| module.to_string());
        self.failed_before.retain(|failure| of(failure).is_none_or(|module| !is_loaded.contains(&module)));
        again::prepare(self.folder.name(), self.lock.file(), &self.failed_before);
    }

    /// What a supervisor had begun that is gone.
    fn finish_change(&mut self) {
        let Some(Wish { number, .. }) = wishing::decoded(&self.folder, BEGUN) else {
            self.folder.remove(BEGUN);
            return;
        };
        let is_made = self.meta.changed.as_ref().is_some_and(|made| made.wish == number);
        if is_made {
            self.log_change();
        }
        self.answer(number, if is_made { Outcome::Done } else { Outcome::Interrupted });
    }

    fn answer(&self, number: u64, outcome: Outcome) {
        // Nobody may be there any more who wants to know.
        let written = write(&self.folder, UNFINISHED_ANSWER, &wishing::encoded(&Answer { number, outcome }));
        let _ = written.and_then(|()| self.folder.rename(UNFINISHED_ANSWER, ANSWER));
        self.folder.remove(BEGUN);
    }

    /// Tells the engine how it is to protect the program, if it goes by anything else.
    pub(crate) fn tell_engine(&mut self) {
        let session = &self.generation.session;
        let ways = self.meta.options.ways();
        if session.ways() != ways {
            session.set_ways(ways);
            session.control().ways_wanted.fetch_add(1, AcqRel);
        }
        self.repeat_requests();
    }

    /// Says in the log what was changed last, unless that is there.
    fn log_change(&mut self) {
        let Some(Made { what, .. }) = &self.meta.changed else { return };
        // Between two that are the same there is one that is not.
        if !what.is_empty() && last_change(&self.folder).as_ref() != Some(what) {
            self.log.add(&Entry::new(Kind::ModuleChanged).cause(&**what).pid(self.pid));
        }
    }

    /// Says what protects the program, for those who want to see that.
    pub(crate) fn tell_parts(&self) {
        // It is a help, and nothing depends on it.
        let written = write(&self.folder, UNFINISHED_PARTS, &wishing::encoded(&self.decides.parts()));
        let _ = written.and_then(|()| self.folder.rename(UNFINISHED_PARTS, PARTS));
    }
}

/// The last change that the log tells of.
fn last_change(folder: &ProgramFolder) -> Option<String> {
    let mut text = String::new();
    File::from(folder.open_file(log::FILE, OFlags::RDONLY).ok()?).read_to_string(&mut text).ok()?;
    let mut entries = text.lines().rev().filter_map(|line| serde_json::from_str::<Entry>(line).ok());
    entries.find(|entry| entry.event == Kind::ModuleChanged).and_then(|entry| entry.cause)
}
