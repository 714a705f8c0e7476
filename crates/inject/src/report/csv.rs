//! Rows as comma-separated values, for other programs' tables.

use super::table::Row;
use crate::judge;

pub fn text(rows: &[Row]) -> String {
    let outcomes = judge::ALL.map(|outcome| outcome.name().replace([' ', '-'], "_"));
    let mut text = format!(
        "setting,fault,injected,{},correct_share,low_95,high_95,detected,recovered,went_back,gave_up,suspended,\
         detection_us_50,detection_us_90,detection_us_99,recovery_us_50,recovery_us_90,recovery_us_99\n",
        outcomes.join(",")
    );
    for row in rows {
        let counts = judge::ALL.map(|outcome| row.of(outcome).to_string());
        let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
        let [low, high] = row.interval.map_or([None; 2], |both| both.map(Some));
        let times = |of: Option<[f64; 3]>| of.map_or([None; 3], |all| all.map(Some)).map(number).join(",");
        // Names of settings and classes hold neither commas nor quotes.
        text += &format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
            row.setting,
            row.class(),
            row.injected,
            counts.join(","),
            number(row.correct),
            number(low),
            number(high),
            row.detected,
            row.recovered,
            row.went_back,
            row.gave_up,
            row.suspended,
            times(row.detection_us),
            times(row.recovery_us),
        );
    }
    text
}
