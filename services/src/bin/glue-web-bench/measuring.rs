//! A server that is measured, slice by slice.

use std::io;
use std::time::Duration;

use crate::crashes::{self, Crash};
use crate::load::{self, Load, Site};
use crate::results::Run;
use crate::servers::{self, Running, Server};
use crate::Options;

pub struct Measuring<'a> {
    server: Server,
    running: Running,
    page: &'a [u8],
    /// The processes that served at first.
    before: Vec<u32>,
    load: Load,
    crashes: Vec<Crash>,
}

impl<'a> Measuring<'a> {
    pub fn start(server: Server, page: &'a [u8], options: &Options) -> io::Result<Self> {
        let running = servers::start(server, page, options.workers)?;
        let before = crashes::instances(running.process());
        Ok(Self { server, running, page, before, load: Load::default(), crashes: Vec::new() })
    }

    /// Under load for a slice, which begins so far into the whole time; what ends behind it counts for nothing.
    pub fn go_on(&mut self, from: Duration, slice: Duration, options: &Options) {
        let (process, site) = (self.running.process(), Site { address: self.running.address, page: self.page });
        let (from, end) = (from.as_nanos() as u64, (from + slice).as_nanos() as u64);
        let planned: Vec<Crash> =
            options.planned().into_iter().filter(|crash| (from..end).contains(&crash.at)).collect();
        let (load, crashes) = std::thread::scope(|scope| {
            let killer = self.server.crashes().then(|| scope.spawn(|| crashes::run(process, &planned, from)));
            let load = load::ask(&site, options.clients as usize, options.keep_alive, slice);
            // Servers without crashes are looked at at the same moments, which are what crashes are compared with.
            (load, killer.map_or_else(|| planned.clone(), |killer| killer.join().unwrap_or_default()))
        });
        self.load.done.extend(load.done.iter().map(|done| from + done).filter(|done| *done < end));
        self.load.failed += load.failed;
        self.load.why = self.load.why.take().or(load.why);
        self.crashes.extend(crashes);
    }

    /// What came of it; nothing: it is base, and lost a component meanwhile.
    pub fn end(self, options: &Options) -> Option<Run> {
        if self.server == Server::Base && crashes::instances(self.running.process()) != self.before {
            return None;
        }
        if let Some(why) = &self.load.why {
            let (name, failed) = (self.server.name(), self.load.failed);
            eprintln!("glue-web-bench: {name}: {failed} requests failed, one of the first {why}");
        }
        let after = crashes::AFTER.min(options.crash_every);
        Some(Run::new(self.server, &self.load, options.length, &self.crashes, after))
    }
}
