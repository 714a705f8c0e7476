//! What the thread does that all connections belong to: it waits for whichever has something, and never for one of them.

use crate::calling::Calling;
use crate::channel::{Command, To};
use crate::nodes::Nodes;
use crate::ready::Ready;
use crate::serving::{Notice, Serving, Visit};
use crate::status::{Standing, Status};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub struct Work {
    pub nodes: Nodes,
    pub serving: Option<Serving>,
    pub calling: Vec<Calling>,
    pub wake: Arc<OwnedFd>,
    pub commands: Receiver<Command>,
    pub to: To,
    pub began: SystemTime,
    /// The kernel had no room for others.
    pub full_until: Option<Instant>,
}

/// How long others are not let in for lack of room.
const FULL: Duration = Duration::from_millis(100);

impl Work {
    /// Until it is to stop.
    pub fn run(mut self) {
        let patience = self.nodes.patience;
        let tick = (patience / 16).clamp(Duration::from_millis(5), Duration::from_millis(250));
        loop {
            let ready = self.wait(tick);
            let now = Instant::now();
            let (mut news, mut visits, mut notices) = (Vec::new(), Vec::new(), Vec::new());
            let is_over = self.obey(&mut visits);
            if is_over {
                break;
            }
            for calling in &mut self.calling {
                calling.step(now, patience, &ready, &mut news);
            }
            if let Some(serving) = &mut self.serving {
                if ready.has(serving.listener().as_fd()) && !serving.accept(now) {
                    self.full_until = Some(now + FULL);
                }
                serving.step(now, patience, &ready, &mut visits, &mut notices);
            }
            news.into_iter().for_each(|news| self.to.news.push(news));
            visits.into_iter().for_each(|visit| (self.to.visits)(visit));
            notices.iter().for_each(|Notice(line)| (self.to.notices)(line));
        }
        let why = "it ends, or reads its files again";
        self.calling.into_iter().for_each(|calling| calling.close(why));
        if let Some(mut serving) = self.serving {
            let mut visits = Vec::new();
            serving.part(why, &mut visits);
            visits.into_iter().for_each(self.to.visits);
        }
    }

    /// Until there is something to do.
    fn wait(&mut self, tick: Duration) -> Ready {
        if self.full_until.is_some_and(|until| Instant::now() >= until) {
            self.full_until = None;
        }
        let mut files = vec![PollFd::new(&*self.wake, PollFlags::IN)];
        if let Some(serving) = self.serving.as_ref().filter(|_| self.full_until.is_none()) {
            files.push(PollFd::from_borrowed_fd(serving.listener().as_fd(), PollFlags::IN));
        }
        for (file, wants) in self.calling.iter().filter_map(Calling::poll) {
            files.push(PollFd::from_borrowed_fd(file, wants));
        }
        for link in self.serving.iter().flat_map(Serving::links) {
            files.push(PollFd::from_borrowed_fd(link.file(), link.wants()));
        }
        let timeout = Timespec { tv_sec: tick.as_secs() as i64, tv_nsec: tick.subsec_nanos().into() };
        // Whatever ends the wait, all of them are looked at.
        let ready = match poll(&mut files, Some(&timeout)) {
            Ok(_) => Ready::of(&files),
            Err(_) => Ready::default(),
        };
        if ready.has(self.wake.as_fd()) {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
        ready
    }

    /// Does what others want. True: to stop.
    fn obey(&mut self, visits: &mut Vec<Visit>) -> bool {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Stop => return true,
                Command::Use { node, pin, is_wanted } => {
                    if let Some(calling) = self.of(node) {
                        calling.want_pin(pin, is_wanted);
                    }
                }
                Command::Want { node, pin, event, is_wanted } => {
                    if let Some(calling) = self.of(node) {
                        calling.want_event(pin, event, is_wanted);
                    }
                }
                Command::Issue { node, pin, operation, argument, reply } => {
                    if let Some(calling) = self.of(node) {
                        calling.command(pin, operation, argument, reply);
                    }
                }
                Command::Answer { visitor, id, answer } => {
                    if let Some(serving) = &mut self.serving {
                        serving.answer(visitor, id, answer);
                    }
                }
                Command::Part { why } => {
                    if let Some(serving) = &mut self.serving {
                        serving.part(&why, visits);
                    }
                }
                // Who asked may not wait for it any more.
                Command::Show { reply } => drop(reply.send(self.statuses())),
                Command::Tell { visitor, told } => {
                    let what = format!("{}/{}", told.pin, told.name);
                    let is_told = self.serving.as_mut().is_none_or(|serving| serving.tell(visitor, told));
                    if !is_told {
                        (self.to.notices)(&format!("an event {what} is too long to be told to another node"));
                    }
                }
            }
        }
        false
    }

    /// A node without an address cannot be used; whoever waits for an answer learns so as its sender is dropped.
    fn of(&mut self, node: usize) -> Option<&mut Calling> {
        self.calling.iter_mut().find(|calling| calling.number() == node)
    }

    fn statuses(&self) -> Vec<Status> {
        let here = self.serving.as_ref().map(Serving::here).unwrap_or_default();
        let status = |(number, node): (usize, &crate::nodes::Node)| {
            let used = self.calling.iter().find(|calling| calling.number() == number).map(Calling::status);
            let uses_us = here.contains(&number);
            let awaited = || Status {
                node: node.name.clone(),
                address: None,
                key: node.key.to_string(),
                standing: if uses_us { Standing::Here } else { Standing::Awaited },
                since: self.began,
                round_trip: None,
                why: None,
                offers: Vec::new(),
                may: node.may.words(),
                uses_us,
            };
            Status { uses_us, ..used.unwrap_or_else(awaited) }
        };
        self.nodes.nodes.iter().enumerate().map(status).collect()
    }
}
