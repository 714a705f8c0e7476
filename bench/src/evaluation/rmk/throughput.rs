//! Figure 9: throughput and response time of a server under 20 to 100 clients, with one kind of module each.

use super::results::{Load, Point};
use super::web::Site;
use super::Extent;
use crate::evaluation::progress::Progress;
use crate::failure::Outcome;
use crate::launch::Side;
use crate::measure::oshang::Daemon;
use crate::workshop::Workshop;
use std::time::Duration;

/// What protects the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Modules {
    None,
    OsHang,
    Hang,
    Checkpoint,
    Visible,
    Server,
}

impl Modules {
    pub const ALL: [Self; 6] = [Self::None, Self::OsHang, Self::Hang, Self::Checkpoint, Self::Visible, Self::Server];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OsHang => "oshang",
            Self::Hang => "hang",
            Self::Checkpoint => "checkpoint",
            Self::Visible => "visible",
            Self::Server => "server",
        }
    }

    pub fn side(self) -> Side<'static> {
        match self {
            Self::None | Self::OsHang => Side::Native,
            Self::Hang => Side::Protected(&["--commit", "manual", "--hang"]),
            Self::Checkpoint => Side::Protected(&["--commit", "manual", "--every", "2s"]),
            Self::Visible => Side::Protected(&["--every", "never"]),
            Self::Server => Side::Protected(&["--every", "never", "--server"]),
        }
    }
}

fn clients(quick: bool) -> &'static [u32] {
    if quick {
        &[20, 100]
    } else {
        &[20, 40, 60, 80, 100]
    }
}

fn length(quick: bool) -> Duration {
    Duration::from_secs(if quick { 1 } else { 4 })
}

/// Tenths of a second that all rounds take.
pub fn tenths(rounds: usize, quick: bool) -> u64 {
    (Modules::ALL.len() * clients(quick).len() * rounds) as u64 * length(quick).as_secs() * 10
}

pub fn measure(extent: Extent, rounds: usize, workshop: &Workshop, progress: &Progress) -> Vec<Load> {
    let empty = |modules: Modules| Load {
        modules: modules.name().into(),
        points: clients(extent.quick).iter().map(|clients| Point { clients: *clients, runs: Vec::new() }).collect(),
        ..Load::default()
    };
    let mut loads: Vec<Load> = Modules::ALL.map(empty).into();
    for number in 0..rounds {
        let mut order: Vec<usize> = (0..loads.len()).collect();
        order.rotate_left(number % Modules::ALL.len());
        for at in order {
            let (modules, load) = (Modules::ALL[at], &mut loads[at]);
            progress.say(format!("Figure 9, {}, round {} of {rounds}", modules.name(), number + 1));
            if let Err(failure) = round(modules, extent, load, workshop, progress) {
                load.obstacle.get_or_insert(failure.to_string());
            }
        }
    }
    loads
}

fn round(modules: Modules, extent: Extent, load: &mut Load, workshop: &Workshop, progress: &Progress) -> Outcome<()> {
    let daemon = if modules == Modules::OsHang { Some(Daemon::begin(workshop)?) } else { None };
    let mut server = Site::make(workshop, extent.seed)?.serve(workshop, modules.side(), &[])?;
    for point in &mut load.points {
        let before = daemon.as_ref().map_or(Duration::ZERO, Daemon::time);
        let (mut served, _) = server.load(workshop, point.clients, length(extent.quick), extent.seed)?;
        let watched = daemon.as_ref().map_or(Duration::ZERO, Daemon::time).saturating_sub(before);
        served.processor_us += watched.as_secs_f64() * 1e6 / served.requests;
        point.runs.push(served);
        progress.passed(length(extent.quick));
    }
    load.conditions = server.running.conditions()?.to_string();
    server.end()
}
