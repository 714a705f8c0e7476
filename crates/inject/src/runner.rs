//! Runs a campaign, or what is left of it.

use crate::campaign::{Campaign, Setting};
use crate::draw::draw;
use crate::error::Error;
use crate::experiment::Laboratory;
use crate::launch::Stage;
use crate::oracle::{unharmed, Oracle, Pace};
use crate::reading;
use crate::record::{Experiment, Head, Line, VERSION};
use crate::results::Results;
use crate::room::{self, House};
use crate::waiting::{is_interrupted, INTERRUPTED};
use indicatif::{ProgressBar, ProgressStyle};
use outlast_supervisor::ask;
use outlast_supervisor::state_folder::StateFolder;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{mpsc, Mutex, PoisonError};
use std::time::Duration;

/// What the person asked for.
pub struct Request {
    pub campaign: PathBuf,
    /// Where results lie; unless told, beside the campaign file.
    pub out: Option<PathBuf>,
    /// In place of the campaign's number.
    pub jobs: Option<usize>,
    /// This very program.
    pub outlast: PathBuf,
}

/// Does all experiments that have no result yet; returns the folder of the results.
pub fn run(request: &Request) -> Result<PathBuf, Error> {
    let (campaign, text) = reading::read(&request.campaign)?;
    let folder = request.out.clone().unwrap_or_else(|| request.campaign.with_extension("results"));
    let digest: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let (mut results, found) = Results::open(&folder)?;
    if found.head.as_ref().is_some_and(|head| head.campaign != digest) {
        return Err(Error::OtherCampaign(folder));
    }
    sweep(&folder);
    let all = experiments(&campaign);
    let done: HashSet<(u32, String)> = found.experiments.iter().map(|e| (e.number, e.setting.clone())).collect();
    let left: VecDeque<(u32, &Setting)> =
        all.into_iter().filter(|(number, setting)| !done.contains(&(*number, setting.name.clone()))).collect();
    if left.is_empty() {
        return Ok(folder);
    }
    watch_for_interrupt();
    let house = House::build(&campaign.target, &request.campaign, &folder)?;
    let stage = Stage { target: &campaign.target, outlast: request.outlast.clone(), state: house.state() };
    let oracle = Oracle::learn(&stage, &house, campaign.references, campaign.timeout)?;
    let head = match found.head {
        Some(head) => head,
        None => {
            let head = Head {
                version: VERSION,
                name: campaign.name.clone(),
                campaign: digest,
                seed: campaign.seed,
                count: campaign.count,
                settings: campaign.settings.iter().map(|setting| setting.name.clone()).collect(),
                pace: paces(&campaign, &stage, &house)?,
                varying: oracle.varying.iter().cloned().collect(),
            };
            results.add(&Line::Campaign(head.clone()))?;
            head
        }
    };
    let bar = bar(&campaign, done.len());
    let laboratory = Laboratory { campaign: &campaign, stage: &stage, house: &house, oracle: &oracle };
    let jobs = request.jobs.unwrap_or(campaign.jobs).max(1);
    let outcome = work(&laboratory, left, jobs, &head.pace, |experiment| {
        bar.inc(1);
        results.add(&Line::Experiment(experiment))
    });
    bar.finish_and_clear();
    end_all(&stage.state);
    let _ = std::fs::remove_file(folder.join(room::NOTE));
    outcome.map(|()| folder)
}

/// Every fault in every setting, faults one after the other: whoever stops early has all settings of each.
fn experiments(campaign: &Campaign) -> Vec<(u32, &Setting)> {
    (0..campaign.count).flat_map(|number| campaign.settings.iter().map(move |setting| (number, setting))).collect()
}

fn paces(campaign: &Campaign, stage: &Stage<'_>, house: &House) -> Result<BTreeMap<String, Pace>, Error> {
    let pace = |(number, setting): (usize, &Setting)| {
        let name = format!("pace-{number}");
        let (_, pace) = unharmed(stage, house, setting, &name, campaign.timeout)?;
        Ok((setting.name.clone(), pace))
    };
    campaign.settings.iter().enumerate().map(pace).collect()
}

/// Has so many threads work; `done` is told of every experiment, by one thread. The first failure ends all.
fn work(
    laboratory: &Laboratory<'_>,
    left: VecDeque<(u32, &Setting)>,
    jobs: usize,
    pace: &BTreeMap<String, Pace>,
    mut done: impl FnMut(Experiment) -> Result<(), Error>,
) -> Result<(), Error> {
    let left = Mutex::new(left);
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop_front().filter(|_| !is_interrupted());
    let give_up = || left.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some((number, setting)) = next() {
                    let planned = draw(laboratory.campaign, number);
                    let none = Pace { elapsed: Duration::ZERO, processor: Duration::ZERO };
                    let pace = pace.get(&setting.name).copied().unwrap_or(none);
                    if sender.send(laboratory.perform(&planned, setting, pace)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut failure = None;
        for experiment in receiver {
            if let Err(e) = experiment.and_then(&mut done) {
                give_up();
                failure.get_or_insert(e);
            }
        }
        match failure {
            Some(e) => Err(e),
            None if is_interrupted() => Err(Error::Interrupted),
            None => Ok(()),
        }
    })
}

fn bar(campaign: &Campaign, done: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::from(campaign.count) * campaign.settings.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {elapsed} (left: {eta})") {
        bar.set_style(style);
    }
    bar.set_message(campaign.name.clone());
    bar.inc(done as u64);
    bar.reset_eta();
    bar
}

/// Ends what a campaign left that was killed.
fn sweep(results: &std::path::Path) {
    if let Some(house) = room::left(results) {
        end_all(&house.join("state"));
        let _ = std::fs::remove_dir_all(house);
    }
}

/// Ends every program that still runs under this state folder.
fn end_all(state: &std::path::Path) {
    if !state.exists() {
        return;
    }
    let Ok(state) = StateFolder::open_at(state.into()) else { return };
    for name in state.names().unwrap_or_default() {
        if let Some(folder) = state.program(&name).ok().filter(|folder| folder.has("session")) {
            let _ = ask::stop(&folder, Duration::from_millis(1));
        }
    }
}

extern "C" fn interrupted(_: libc::c_int) {
    INTERRUPTED.store(true, Relaxed);
}

/// Ctrl-C and the like end the campaign between two results.
fn watch_for_interrupt() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler stores into an atomic and does nothing else.
        unsafe { libc::signal(signal, interrupted as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}
