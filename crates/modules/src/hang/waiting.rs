//! The wait graph: which thread waits for what which other thread has. A cycle in it is a deadlock.

use outlast_interfaces::pmc::Wait;
use std::collections::BTreeMap;

/// Threads that wait for each other, each for the next one and the last for the first; the one with the smallest number comes first. A thread
/// that waits for itself is a cycle as well.
pub fn cycle(waits: &BTreeMap<i32, Wait>) -> Option<Vec<(i32, Wait)>> {
    // Every thread waits for one at most: whoever is followed for as many steps as there are threads ends in the cycle, if there is one.
    let within = waits.keys().find_map(|&from| (0..waits.len()).try_fold(from, |at, _| Some(waits.get(&at)?.owner)))?;
    let mut around = Vec::new();
    let mut at = within;
    while around.is_empty() || at != within {
        let wait = *waits.get(&at)?;
        around.push((at, wait));
        at = wait.owner;
    }
    let first = around.iter().enumerate().min_by_key(|(_, (thread, _))| *thread)?.0;
    around.rotate_left(first);
    Some(around)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::pmc::Lock;

    fn graph(edges: &[(i32, i32)]) -> BTreeMap<i32, Wait> {
        edges.iter().map(|&(from, owner)| (from, Wait { lock: Lock::Mutex, at: 0x1000, owner })).collect()
    }

    fn found(edges: &[(i32, i32)]) -> Option<Vec<i32>> {
        cycle(&graph(edges)).map(|cycle| cycle.into_iter().map(|(thread, _)| thread).collect())
    }

    #[test]
    fn cycles_are_found_wherever_one_begins() {
        assert_eq!(found(&[(2, 1), (1, 2)]), Some(vec![1, 2]));
        assert_eq!(found(&[(5, 9), (9, 7), (7, 5), (1, 5), (2, 1)]), Some(vec![5, 9, 7]));
        assert_eq!(found(&[(4, 4)]), Some(vec![4]));
        assert_eq!(found(&[(1, 2), (2, 3), (4, 6), (6, 4)]), Some(vec![4, 6]));
    }

    #[test]
    fn a_chain_that_somebody_gets_on_with_is_none() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(1, 2)]), None);
        assert_eq!(found(&[(1, 2), (2, 3), (3, 4), (9, 3)]), None);
    }
}
