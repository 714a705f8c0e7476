//! A line of the log: one of a program's, with the component that it is about.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_glue_rt::Happened;
use outlast_interfaces::comp::{Death, Hang, Stays};
use outlast_interfaces::proc::End;
use outlast_supervisor::log::{Entry, Kind};
use outlast_supervisor::names;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    #[serde(flatten)]
    pub entry: Entry,
    pub component: String,
    /// Where an instance ended: descriptors of clients that it knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u32>,
    /// So many of them were brought back from the instance before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<u32>,
    /// Calls that it had completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
}

impl Line {
    /// None: it is nothing for a log. `causes`: of each component, what its last instance ended of.
    pub fn of(component: &str, happened: &Happened, causes: &mut BTreeMap<String, String>) -> Option<Self> {
        let mut line = Self {
            entry: Entry::new(Kind::Start),
            component: component.into(),
            descriptors: None,
            recovered: None,
            completed: None,
        };
        line.entry = match happened {
            Happened::Begun(command) => Entry::new(Kind::Start).cause(format!("{component}, as {command}")),
            Happened::Serves(serves) if serves.is_first => return None,
            Happened::Serves(serves) => {
                let cause = causes.get(component).cloned().unwrap_or_else(|| format!("the death of {component}"));
                Entry::new(Kind::Recovered).cause(cause).took(serves.took).pid(serves.process)
            }
            Happened::Hung(process, hang) => {
                let cause = format!("{component}: {}, and the process is killed", stays(hang));
                Entry::new(Kind::Hung).cause(cause).pid(*process)
            }
            Happened::Died(death) => {
                (line.descriptors, line.recovered) = (Some(death.descriptors), Some(death.recovered));
                line.completed = Some(death.completed);
                causes.insert(component.into(), cause_of(component, death));
                let cause = format!("{}; {}", cause_of(component, death), held(death.descriptors, death.recovered));
                Entry::new(Kind::Killed).cause(cause).pid(death.process)
            }
            Happened::TemplateDied(process, end) => {
                let cause = format!("{} in the process that {component} is forked from", described(*end));
                causes.insert(component.into(), cause.clone());
                Entry::new(Kind::Killed).cause(cause).pid(*process)
            }
            Happened::GivenUp(why) => Entry::new(Kind::GaveUp).cause(format!("{component}: {why}")),
            Happened::Ended { descriptors, recovered } => {
                (line.descriptors, line.recovered) = (Some(*descriptors), Some(*recovered));
                Entry::new(Kind::Exit).cause(format!("{component}; {}", held(*descriptors, *recovered)))
            }
            Happened::ModuleFailed(how) => Entry::new(Kind::ModuleFailed).cause(how.clone()),
            Happened::ModuleSaid(what) => Entry::new(Kind::ModuleSaid).cause(what.clone()),
        };
        Some(line)
    }
}

fn cause_of(component: &str, death: &Death) -> String {
    match death.hung {
        true => format!("a hang in {component}"),
        false => format!("{} in {component}", described(death.end)),
    }
}

/// Why it is taken to hang; an operation is known by its place in the interface.
fn stays(hang: &Hang) -> String {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let operation = hang.operation;
    match hang.why {
        Stays::Still(time) => format!("no call has ended for {}, operation {operation} among them", seconds(time)),
        Stays::Alone(time) => format!("operation {operation} has not ended for {}", seconds(time)),
        Stays::Overdue(time) => format!("operation {operation} was to go on {} ago", seconds(time)),
    }
}

fn described(end: Option<End>) -> String {
    match end {
        Some(End::Exited(status)) => format!("exit {status}"),
        Some(End::Killed(signal)) => names::signal(signal),
        None => "an unknown cause".into(),
    }
}

/// What an instance had when it ended.
fn held(descriptors: u32, recovered: u32) -> String {
    let plural = if descriptors == 1 { "" } else { "s" };
    match recovered {
        0 => format!("it had {descriptors} descriptor{plural}"),
        _ => format!("it had {descriptors} descriptor{plural}, {recovered} recovered"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::comp::Serves;

    fn lines(all: &[Happened]) -> Vec<Line> {
        let mut causes = BTreeMap::new();
        all.iter().filter_map(|happened| Line::of("lock", happened, &mut causes)).collect()
    }

    fn death(end: End, hung: bool) -> Happened {
        Happened::Died(Death {
            process: 7,
            end: Some(end),
            hung,
            completed: 90,
            started: true,
            wanted: true,
            lived: Duration::from_secs(1),
            descriptors: 12,
            recovered: 11,
        })
    }

    #[test]
    fn a_line_is_one_of_a_programs_log_with_more_in_it() {
        let serves = |is_first| Happened::Serves(Serves { process: 8, took: Duration::from_micros(340), is_first });
        let all = lines(&[
            Happened::Begun("/bin/locks".into()),
            serves(true),
            death(End::Killed(11), false),
            serves(false),
            Happened::Hung(8, Hang { operation: 2, why: Stays::Still(Duration::from_millis(2100)) }),
            death(End::Killed(9), true),
            serves(false),
            Happened::TemplateDied(3, Some(End::Exited(1))),
            Happened::GivenUp("too often".into()),
            Happened::Ended { descriptors: 1, recovered: 0 },
        ]);
        let sentences: Vec<String> = all.iter().map(|line| line.entry.sentence()).collect();
        assert_eq!(
            sentences,
            [
                "started: lock, as /bin/locks",
                "died of SIGSEGV in lock; it had 12 descriptors, 11 recovered",
                "recovered from SIGSEGV in lock (340 µs)",
                "hangs: lock: no call has ended for 2.1 s, operation 2 among them, and the process is killed",
                "died of a hang in lock; it had 12 descriptors, 11 recovered",
                "recovered from a hang in lock (340 µs)",
                "died of exit 1 in the process that lock is forked from",
                "gave up: lock: too often",
                "ended: lock; it had 1 descriptor",
            ]
        );
        for line in all {
            let text = serde_json::to_string(&line).expect("text");
            assert_eq!(serde_json::from_str::<Entry>(&text).expect("a program's"), line.entry);
            assert_eq!(serde_json::from_str::<Line>(&text).expect("a system's"), line);
        }
    }
}
