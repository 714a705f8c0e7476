//! Table 7: bits that flip and hangs in a server's main loop, by `outlast inject`, and sessions without any fault.

use super::results::{Injected, Unharmed};
use super::web::installed;
use super::Extent;
use crate::evaluation::progress::Progress;
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::running::Running;
use crate::user::User;
use crate::workshop::Workshop;
use outlast_supervisor::log::{Entry, Kind, FILE};
use rustix::process::{kill_process, Signal};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One of the folder `campaigns`, and its short form's number of faults.
struct Campaign {
    name: &'static str,
    text: &'static str,
    short: usize,
}

const CAMPAIGNS: [Campaign; 2] = [
    Campaign { name: "web-flips", text: include_str!("../../../../campaigns/web-flips.toml"), short: 4 },
    Campaign { name: "web-hangs", text: include_str!("../../../../campaigns/web-hangs.toml"), short: 3 },
];
/// What runs in the room of an experiment.
const WEB: [(&str, &str); 3] = [
    ("web.conf", include_str!("../../../../campaigns/web/web.conf")),
    ("prepare.sh", include_str!("../../../../campaigns/web/prepare.sh")),
    ("sessions.c", include_str!("../../../../campaigns/web/sessions.c")),
];
/// Seconds that a fault in one setting takes, roughly, with two at the same time.
const A_FAULT: f64 = 0.9;
/// Sessions on one server, which is long enough for it to be learnt, and requests before the huge file.
const SESSIONS: usize = 10_000;
const SMALL: usize = 50;
/// Seconds that a session takes, roughly, native and protected.
const A_SESSION: f64 = 0.006;

impl Campaign {
    /// The number in its own text.
    fn whole(&self) -> usize {
        let line = self.text.lines().find_map(|line| line.strip_prefix("count = "));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn count(&self, extent: Extent) -> usize {
        extent.of(self.whole(), self.short)
    }
}

/// Tenths of a second that all takes.
pub fn tenths(extent: Extent) -> u64 {
    let faults: usize = CAMPAIGNS.iter().map(|campaign| campaign.count(extent)).sum();
    ((faults as f64 * A_FAULT + sessions(extent) as f64 * A_SESSION) * 10.0) as u64
}

/// All campaigns, with their results in `folder`, where what was interrupted goes on, or is told of `as_it_is`.
pub fn inject(
    extent: Extent,
    folder: &Path,
    as_it_is: bool,
    workshop: &Workshop,
    progress: &Progress,
) -> Vec<Injected> {
    let mut all = Vec::new();
    for campaign in CAMPAIGNS.iter().filter(|campaign| campaign.count(extent) > 0) {
        let count = campaign.count(extent);
        progress.say(format!("Table 7, {}, {count} faults", campaign.name));
        let results = folder.join(campaign.name);
        let performed = if as_it_is { Ok(()) } else { perform(campaign, count, folder, workshop) };
        match performed.and_then(|()| report(&results, workshop)) {
            Ok(settings) => all.extend(settings),
            Err(failure) => all.push(Injected {
                campaign: campaign.name.into(),
                obstacle: Some(failure.to_string()),
                ..Injected::default()
            }),
        }
        progress.passed(Duration::from_secs_f64(count as f64 * A_FAULT));
    }
    all
}

/// Makes a campaign, or what is left of it.
fn perform(campaign: &Campaign, count: usize, folder: &Path, workshop: &Workshop) -> Outcome<()> {
    installed("/usr/sbin/lighttpd")?;
    let web = folder.join("web");
    fs::create_dir_all(&web).tried_on(&web)?;
    for (name, text) in WEB {
        let path = web.join(name);
        fs::write(&path, text).tried_on(path)?;
    }
    // With its own number it is the same campaign as in the folder `campaigns`, and goes on with the results of that.
    let text = campaign.text.replace(&format!("count = {}\n", campaign.whole()), &format!("count = {count}\n"));
    let file = folder.join(format!("{}.toml", campaign.name));
    fs::write(&file, text).tried_on(&file)?;
    let out = folder.join(campaign.name);
    outlast(workshop, &["inject".as_ref(), file.as_ref(), "--out".as_ref(), out.as_ref()]).map(drop)
}

fn report(results: &Path, workshop: &Workshop) -> Outcome<Vec<Injected>> {
    let text = outlast(workshop, &["report".as_ref(), results.as_ref(), "--json".as_ref()])?;
    let report: Value =
        serde_json::from_str(&text).map_err(|e| Failure::Unreadable("outlast report".into(), e.to_string()))?;
    counted(&report).ok_or_else(|| Failure::Unreadable("outlast report".into(), "no campaign".into()))
}

/// What a command prints that must succeed.
fn outlast(workshop: &Workshop, words: &[&OsStr]) -> Outcome<String> {
    let program = workshop.executable("outlast");
    let output = Command::new(&program).args(words).stdin(Stdio::null()).output().tried_on(&program)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).lines().last().map(|line| format!(": {line}"));
    Err(Failure::Ended("outlast".into(), output.status, said.unwrap_or_default()))
}

/// What became of the faults, for each setting.
fn counted(report: &Value) -> Option<Vec<Injected>> {
    let head = &report["campaign"];
    let settings = head["settings"].as_array()?;
    let experiments = report["experiments"].as_array()?;
    let of = |setting: &str| {
        let all: Vec<&Value> = experiments.iter().filter(|one| one["setting"] == setting).collect();
        let count = |wanted: &dyn Fn(&Value) -> bool| all.iter().filter(|one| wanted(one)).count();
        let outcome = |name: &str| count(&|one| one["outcome"] == name);
        let struck = |one: &Value| one["struck"] == true;
        let latency = |one: &&Value| one["outlast"]["detected_us"].as_f64().map(|micros| micros / 1e3);
        Some(Injected {
            campaign: head["name"].as_str()?.into(),
            setting: setting.into(),
            seed: head["seed"].as_u64()?,
            count: all.len(),
            struck: count(&struck),
            idle: count(&|one| struck(one) && one["outcome"] == "not-activated"),
            correct: outcome("correct"),
            error: outcome("error"),
            crash: outcome("crash"),
            hang: outcome("hang"),
            went_back: outcome("went-back"),
            silent: outcome("fail-silence"),
            detected: count(&|one| struck(one) && one["outlast"]["detected_us"].is_number()),
            recovered: count(&|one| struck(one) && one["outlast"]["recoveries"].as_u64().is_some_and(|n| n > 0)),
            gave_up: count(&|one| one["outlast"]["gave_up"] == true),
            latencies_ms: all.iter().filter(|one| struck(one)).filter_map(latency).collect(),
            obstacle: None,
        })
    };
    settings.iter().map(|setting| of(setting.as_str()?)).collect()
}

fn sessions(extent: Extent) -> usize {
    extent.of(20_000, 40)
}

/// Sessions on servers of which each learns anew what is usual.
pub fn unharmed(extent: Extent, workshop: &Workshop, progress: &Progress) -> Vec<Unharmed> {
    let mut all = Vec::new();
    let mut left = sessions(extent);
    while left > 0 {
        let count = left.min(SESSIONS);
        left -= count;
        let seed = extent.seed + all.len() as u64;
        progress.say(format!("Table 7, {count} sessions, {left} to come"));
        let mut one = Unharmed { seed, small: SMALL, ..Unharmed::default() };
        one.obstacle = visit(&mut one, count, workshop).err().map(|failure| failure.to_string());
        let failed = one.obstacle.is_some();
        all.push(one);
        if failed {
            break;
        }
        progress.passed(Duration::from_secs_f64(count as f64 * A_SESSION));
    }
    all
}

fn visit(one: &mut Unharmed, count: usize, workshop: &Workshop) -> Outcome<()> {
    installed("/usr/sbin/lighttpd")?;
    let folder = workshop.work(User::Own).join("visited");
    if !folder.exists() {
        fs::create_dir(&folder).tried_on(&folder)?;
        for (name, text) in WEB {
            let path = folder.join(name);
            fs::write(&path, text).tried_on(path)?;
        }
        let status = Command::new("sh").arg("prepare.sh").current_dir(&folder).status().tried("run sh")?;
        if !status.success() {
            return Err(Failure::Ended("prepare.sh".into(), status, String::new()));
        }
    }
    let expected = sums(Side::Native, one, count, &folder, workshop)?.0;
    let began = Instant::now();
    let (found, log) = sums(Side::Protected(&["--hang"]), one, count, &folder, workshop)?;
    one.seconds = began.elapsed().as_secs_f64();
    one.sessions = found.len();
    one.different = found.iter().zip(&expected).filter(|(found, expected)| found != expected).count();
    let entries = log.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok());
    one.false_alarms = entries.filter(|entry| entry.event == Kind::Hung).count();
    match found.len() == count && expected.len() == count {
        true => Ok(()),
        false => Err(Failure::Unreadable("sessions".into(), format!("{} of {count} sessions", found.len()))),
    }
}

/// What the sessions got, one sum each, and the log of a protected server.
fn sums(
    side: Side,
    one: &Unharmed,
    count: usize,
    folder: &Path,
    workshop: &Workshop,
) -> Outcome<(Vec<String>, String)> {
    let argv = ["/usr/sbin/lighttpd", "-D", "-f", "web.conf"].map(Into::into).to_vec();
    let launch = Launch { workshop, user: User::Own, side, argv };
    let streams = Streams { input: Stdio::null(), output: Stdio::null(), errors: Stdio::null() };
    // Of the server before.
    let _ = fs::remove_file(folder.join("socket"));
    let mut running: Running = launch.start_with(streams, |command| {
        command.current_dir(folder);
    })?;
    let numbers = [one.seed, count as u64, one.small as u64].map(|number| number.to_string());
    let client = workshop.executable("sessions");
    let output =
        Command::new(&client).args(["socket", "-"]).args(numbers).current_dir(folder).output().tried_on(&client)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(Failure::Ended("sessions".into(), output.status, format!(": {said}")));
    }
    let log = match side {
        Side::Native => String::new(),
        Side::Protected(_) => {
            running.session()?;
            running.conditions()?;
            let path = running.folder().join(FILE);
            fs::read_to_string(&path).tried_on(path)?
        }
    };
    kill_process(running.outer_pid(), Signal::INT).tried("end the server")?;
    running.wait()?;
    Ok((String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect(), log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_knows_its_number() {
        let numbers = CAMPAIGNS.map(|campaign| campaign.whole());
        assert!(numbers[0] >= 1_800 && numbers[1] >= 1_200, "{numbers:?}");
    }

    #[test]
    fn faults_are_counted_by_what_became_of_them() {
        let one = |outcome: &str, struck: bool, detected: Option<f64>| {
            serde_json::json!({
                "setting": "hang", "outcome": outcome, "struck": struck,
                "outlast": { "detected_us": detected, "recoveries": u32::from(detected.is_some()), "gave_up": false }
            })
        };
        let report = serde_json::json!({
            "campaign": { "name": "web-hangs", "seed": 3, "settings": ["hang"] },
            "experiments": [
                one("correct", true, Some(1500.0)),
                one("not-activated", false, None),
                one("hang", true, None),
            ]
        });
        let all = counted(&report).unwrap();
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!((one.count, one.struck, one.detected, one.hang, one.correct), (3, 2, 1, 1, 1));
        assert_eq!(one.latencies_ms, [1.5]);
    }
}
