//! What strikes when: drawn from the seed and an experiment's number alone, so that every setting meets the same fault.

use crate::campaign::{Campaign, Clock, Fault};
use fastrand::Rng;

/// When a fault strikes.
#[derive(Clone, Debug, PartialEq)]
pub enum Point {
    /// At this share of an unharmed run.
    Share(Clock, f64),
    /// When a function is entered the nth time.
    Entry(String, u64),
    /// At the nth call with this name.
    Call(String, u64),
}

/// A fault that is drawn.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    /// From 0.
    pub number: u32,
    pub fault: &'a Fault,
    pub point: Point,
    /// For everything that can only be chosen once the target is there: threads, registers, addresses.
    pub seed: u64,
}

/// The fault with this number.
pub fn draw(campaign: &Campaign, number: u32) -> Planned<'_> {
    // Seeds of neighbours must not be neighbours, or their first numbers are alike.
    let mut rng = Rng::with_seed(mixed(campaign.seed ^ mixed(u64::from(number) + 1)));
    let whole: u64 = campaign.faults.iter().map(|fault| u64::from(fault.get_ref().weight)).sum();
    let mut at = rng.u64(0..whole.max(1));
    let chosen = campaign.faults.iter().map(|fault| fault.get_ref()).find(|fault| {
        let weight = u64::from(fault.weight);
        let found = at < weight;
        at = at.saturating_sub(weight);
        found
    });
    // The reader refuses campaigns without faults.
    let fault = chosen.unwrap_or_else(|| campaign.faults[0].get_ref());
    let share = fault.from + rng.f64() * (fault.to - fault.from);
    let [first, last] = fault.nth.map_or([1, 1], |nth| nth.bounds());
    let nth = rng.u64(first..=last);
    let point = match (&fault.symbol, &fault.call) {
        (Some(symbol), _) => Point::Entry(symbol.clone(), nth),
        (None, Some(call)) => Point::Call(call.clone(), nth),
        (None, None) => Point::Share(fault.clock, share),
    };
    Planned { number, fault, point, seed: rng.u64(..) }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Point::Share(Clock::TaskClock, share) => write!(f, "{:.2} % of processor time", share * 100.0),
            Point::Share(Clock::Elapsed, share) => write!(f, "{:.2} % of elapsed time", share * 100.0),
            Point::Entry(symbol, nth) => write!(f, "entry {nth} of {symbol}"),
            Point::Call(call, nth) => write!(f, "call {nth} of {call}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(seed: u64) -> Campaign {
        toml::from_str(&format!(
            "name = 'x'\nseed = {seed}\ncount = 9\n[target]\ncommand = ['x']\n\
             [[fault]]\nkind = 'register'\nweight = 3\n[[fault]]\nkind = 'loop'\n"
        ))
        .unwrap()
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        let all = |seed| {
            let campaign = campaign(seed);
            (0..50).map(|n| draw(&campaign, n)).map(|p| (p.fault.kind, p.point, p.seed)).collect::<Vec<_>>()
        };
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
    }

    #[test]
    fn weights_are_kept() {
        let campaign = campaign(1);
        let loops = (0..4_000).filter(|n| draw(&campaign, *n).fault.kind == crate::campaign::Kind::Loop).count();
        assert!((800..1_200).contains(&loops), "{loops} of 4000 for a quarter of the weight");
    }
}
