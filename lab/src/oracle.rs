//! What whoever reads along may have seen.

/// Line `n` of the ledger.
pub fn line(n: usize, sum: u64) -> String {
    format!("{n:06} {sum:016x}\n")
}

/// The whole of it.
pub fn ledger(lines: usize) -> Vec<String> {
    let mut sum = 1_u64;
    (1..=lines)
        .map(|n| {
            for i in 0..1000 {
                sum = (sum ^ (n + i) as u64).wrapping_mul(0x100_0000_01b3);
            }
            line(n, sum)
        })
        .collect()
}

/// One stretch between two losses of power.
#[derive(Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Whole lines told by now.
    pub told: usize,
    /// Lines that had been told before.
    pub repeated: usize,
}

/// Compares what was told since the last boot, when `told` lines had been told whole. At most `repeatable` of these may come again.
pub fn check(ledger: &[String], told: usize, repeatable: usize, said: &[u8]) -> Result<Stretch, String> {
    let text = String::from_utf8_lossy(said);
    if text.is_empty() {
        return Ok(Stretch { told, repeated: 0 });
    }
    let from = (told.saturating_sub(repeatable)..=told).rev().find(|&from| {
        let begins = ledger.get(from).is_some_and(|line| text.starts_with(line) || line.starts_with(&*text));
        begins && ledger[from..].concat().starts_with(&*text)
    });
    let Some(from) = from else {
        let shown: String = text.chars().take(200).collect();
        return Err(format!("{told} lines were told before, then came {shown:?}"));
    };
    let whole = text.matches('\n').count();
    Ok(Stretch { told: told.max(from + whole), repeated: told - from })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_told_before_may_come_again_and_none_may_be_left_out() {
        let ledger = ledger(9);
        let said = |from: usize, to: usize| ledger[from..to].concat().into_bytes();
        assert_eq!(check(&ledger, 0, 1, &said(0, 3)), Ok(Stretch { told: 3, repeated: 0 }));
        assert_eq!(check(&ledger, 3, 1, &said(3, 5)), Ok(Stretch { told: 5, repeated: 0 }));
        assert_eq!(check(&ledger, 3, 1, &said(2, 5)), Ok(Stretch { told: 5, repeated: 1 }));
        assert_eq!(check(&ledger, 3, 1, &said(2, 5)[..40]), Ok(Stretch { told: 3, repeated: 1 }));
        assert!(check(&ledger, 3, 1, &said(1, 5)).is_err());
        assert!(check(&ledger, 3, 1, &said(4, 5)).is_err());
        assert!(check(&ledger, 3, 1, b"broken").is_err());
    }
}
