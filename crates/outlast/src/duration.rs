//! Durations as people write them.

use std::time::Duration;

/// `50ms`, `1s`, `2min`: more than nothing, at most a day.
pub fn parse(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration.is_zero() => Err("must be more than nothing".into()),
        Ok(duration) if duration > Duration::from_secs(86_400) => Err("must be at most a day".into()),
        Ok(duration) => Ok(duration),
        Err(e) => Err(format!("{e}; write 50ms, 1s, 2min")),
    }
}
