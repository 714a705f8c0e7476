//! What each setting gains over the one before it, fault by fault: the same fault strikes in all settings.

use crate::campaign::Kind;
use crate::judge::Outcome;
use crate::record::{Experiment, Head};
use serde::Serialize;
use std::collections::BTreeMap;

/// What became, in one setting, of faults of one class that were harmful in the setting before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    pub over: String,
    pub setting: String,
    /// None: all classes.
    pub kind: Option<Kind>,
    /// Faults that were activated in both.
    pub activated: usize,
    /// Those of them after which the run was not correct in the setting before.
    pub harmful: usize,
    /// Those of the harmful ones that are correct here, and those after which an older generation was gone back to.
    pub correct: usize,
    pub went_back: usize,
    /// Those that were correct in the setting before, and are neither here.
    pub harmful_now: usize,
}

/// For each two settings that follow each other, classes by name, all of them last.
pub fn gains(head: &Head, experiments: &[Experiment]) -> Vec<Gain> {
    let outcomes: BTreeMap<(&str, u32), &Experiment> =
        experiments.iter().map(|e| ((e.setting.as_str(), e.number), e)).collect();
    let mut all = Vec::new();
    for pair in head.settings.windows(2) {
        let [over, setting] = pair else { continue };
        let of = |setting: &String, number| outcomes.get(&(setting.as_str(), number)).copied();
        let both: Vec<(&Experiment, &Experiment)> = (0..head.count)
            .filter_map(|number| Some((of(over, number)?, of(setting, number)?)))
            .filter(|(before, now)| is_activated(before.outcome) && is_activated(now.outcome))
            .collect();
        let mut kinds: Vec<_> = both.iter().map(|(before, _)| Some(before.kind)).collect();
        kinds.sort();
        kinds.dedup();
        for kind in kinds.into_iter().chain([None]) {
            let those = both.iter().filter(|(before, _)| kind.is_none_or(|kind| before.kind == kind));
            all.push(gain(over, setting, kind, &those.map(|(a, b)| (a.outcome, b.outcome)).collect::<Vec<_>>()));
        }
    }
    all
}

fn gain(over: &str, setting: &str, kind: Option<Kind>, outcomes: &[(Outcome, Outcome)]) -> Gain {
    use Outcome::{Correct, WentBack};
    let count = |is: &dyn Fn(Outcome, Outcome) -> bool| outcomes.iter().filter(|(a, b)| is(*a, *b)).count();
    Gain {
        over: over.into(),
        setting: setting.into(),
        kind,
        activated: outcomes.len(),
        harmful: count(&|before, _| before != Correct),
        correct: count(&|before, now| before != Correct && now == Correct),
        went_back: count(&|before, now| before != Correct && now == WentBack),
        harmful_now: count(&|before, now| before == Correct && ![Correct, WentBack].contains(&now)),
    }
}

fn is_activated(outcome: Outcome) -> bool {
    ![Outcome::NotActivated, Outcome::Impossible].contains(&outcome)
}

/// Those of several campaigns together.
pub fn sum(all: impl Iterator<Item = Gain>) -> Vec<Gain> {
    let mut sums: Vec<Gain> = Vec::new();
    for gain in all {
        let same =
            |other: &&mut Gain| (&other.over, &other.setting, other.kind) == (&gain.over, &gain.setting, gain.kind);
        match sums.iter_mut().find(same) {
            None => sums.push(gain),
            Some(sum) => {
                sum.activated += gain.activated;
                sum.harmful += gain.harmful;
                sum.correct += gain.correct;
                sum.went_back += gain.went_back;
                sum.harmful_now += gain.harmful_now;
            }
        }
    }
    sums
}

/// A table for each two settings.
pub fn markdown(gains: &[Gain]) -> String {
    let mut pairs: Vec<_> = gains.iter().map(|gain| (&gain.over, &gain.setting)).collect();
    pairs.dedup();
    let mut done = Vec::new();
    let mut text = String::new();
    for pair in pairs {
        if done.contains(&pair) {
            continue;
        }
        done.push(pair);
        text += &format!(
            "\nWhat *{}* gains over *{}*, of the same faults:\n\n| fault | activated in both | harmful in {} | of these correct | \
             of these went back | correct before, harmful now |\n|---|---|---|---|---|---|\n",
            pair.1, pair.0, pair.0
        );
        let mut rows: Vec<&Gain> = gains.iter().filter(|gain| (&gain.over, &gain.setting) == pair).collect();
        rows.sort_by_key(|gain| (gain.kind.is_none(), gain.kind));
        for gain in rows {
            let class = gain.kind.map_or("all", Kind::name);
            let Gain { activated, harmful, correct, went_back, harmful_now, .. } = gain;
            text += &format!("| {class} | {activated} | {harmful} | {correct} | {went_back} | {harmful_now} |\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(setting: &str, number: u32, kind: Kind, outcome: Outcome) -> Experiment {
        Experiment {
            number,
            setting: setting.into(),
            kind,
            point: String::new(),
            struck: true,
            place: None,
            what: None,
            activated: None,
            outcome,
            end: String::new(),
            objection: None,
            outlast: None,
            to_end_ms: None,
            elapsed_ms: 0.0,
        }
    }

    fn head(settings: &[&str], count: u32) -> Head {
        Head {
            version: crate::record::VERSION,
            name: "it".into(),
            campaign: String::new(),
            seed: 0,
            count,
            settings: settings.iter().map(|setting| (*setting).into()).collect(),
            pace: BTreeMap::new(),
            varying: Vec::new(),
        }
    }

    #[test]
    fn each_fault_is_compared_with_itself_in_the_setting_before() {
        use Outcome::{Correct, Crash, FailSilence, Hang, NotActivated, WentBack};
        let faults = [
            (Kind::Register, [Crash, Correct]),
            (Kind::Register, [Crash, WentBack]),
            (Kind::Register, [Correct, FailSilence]),
            (Kind::Register, [Correct, WentBack]),
            (Kind::Register, [Crash, NotActivated]),
            (Kind::Loop, [Hang, Hang]),
        ];
        let mut experiments = Vec::new();
        for (number, (kind, outcomes)) in faults.iter().enumerate() {
            for (setting, outcome) in ["native", "protected"].iter().zip(outcomes) {
                experiments.push(experiment(setting, number as u32, *kind, *outcome));
            }
        }
        let gains = gains(&head(&["native", "protected"], 6), &experiments);
        let figures = |gain: &Gain| [gain.activated, gain.harmful, gain.correct, gain.went_back, gain.harmful_now];
        let of = |kind| gains.iter().find(|gain| gain.kind == kind).map(figures);
        assert_eq!(of(Some(Kind::Register)), Some([4, 2, 1, 1, 1]));
        assert_eq!(of(Some(Kind::Loop)), Some([1, 1, 0, 0, 0]));
        assert_eq!(of(None), Some([5, 3, 1, 1, 1]));
        let twice = sum(gains.iter().chain(&gains).cloned());
        assert_eq!((twice.len(), figures(&twice[2])), (3, [10, 6, 2, 2, 2]));
        let text = markdown(&twice);
        assert!(
            text.contains("What *protected* gains over *native*") && text.ends_with("| all | 10 | 6 | 2 | 2 | 2 |\n")
        );
    }

    #[test]
    fn one_setting_alone_gains_over_nothing() {
        assert_eq!(gains(&head(&["native"], 3), &[]), []);
        assert_eq!(markdown(&[]), "");
    }
}
