//! Figures as people read them at a glance, in few characters.

/// `0.3`, `17`, `4.2k`, `1.3M`.
pub fn number(value: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    scaled(value, 1000.0, &UNITS)
}

/// The same of bytes.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];
    scaled(value as f64, 1024.0, &UNITS)
}

/// Microseconds: `850n`, `3.4µ`, `12m`, `1.5s`.
pub fn micros(value: f64) -> String {
    const UNITS: [&str; 4] = ["n", "µ", "m", "s"];
    scaled(value * 1000.0, 1000.0, &UNITS)
}

/// `5s`, `3m`, `2h`, `4d`.
pub fn age(seconds: f64) -> String {
    match seconds as u64 {
        s @ ..60 => format!("{s}s"),
        s @ ..3600 => format!("{}m", s / 60),
        s @ ..86_400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // What would be rounded up to a thousand is one of the next unit.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let is_whole = value >= 9.95 || value == 0.0 || (unit == 0 && value.fract() == 0.0);
    let digits = if is_whole { 0 } else { 1 };
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_take_few_characters() {
        let numbers = [0.0, 0.25, 3.0, 9.96, 17.4, 999.4, 999.7, 4_200.0, 12_345.0, 1.3e6, 9.9e17];
        let shown: Vec<_> = numbers.into_iter().map(number).collect();
        assert_eq!(shown, ["0", "0.2", "3", "10", "17", "999", "1.0k", "4.2k", "12k", "1.3M", "990000T"]);
        assert_eq!([0, 1023, 1024, 159_744, 5 << 30].map(bytes), ["0B", "1023B", "1.0K", "156K", "5.0G"]);
        assert_eq!([0.85, 3.4, 12_000.0, 1.5e6].map(micros), ["850n", "3.4µ", "12m", "1.5s"]);
        assert_eq!([0.9, 59.0, 60.0, 7200.0, 1e6].map(age), ["0s", "59s", "1m", "2h", "11d"]);
    }
}
