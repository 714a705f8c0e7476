//! Plots as SVG, which a page holds itself.

use super::table::Row;
use crate::error::Error;
use crate::judge::{self, Outcome};
use crate::reaction::Reaction;
use crate::record::Experiment;
use plotters::prelude::*;
use std::fmt::Display;

fn failed(e: impl Display) -> Error {
    Error::Plot(e.to_string())
}

const FONT: (&str, u32) = ("sans-serif", 14);
const LINE: i32 = 26;
const LEFT: i32 = 210;
const WIDTH: i32 = 960;

pub fn colour(outcome: Outcome) -> RGBColor {
    match outcome {
        Outcome::NotActivated => RGBColor(205, 205, 205),
        Outcome::Correct => RGBColor(70, 150, 90),
        Outcome::Error => RGBColor(230, 190, 70),
        Outcome::Crash => RGBColor(215, 110, 50),
        Outcome::Hang => RGBColor(120, 90, 160),
        Outcome::WentBack => RGBColor(90, 150, 200),
        Outcome::FailSilence => RGBColor(180, 30, 40),
        Outcome::Impossible => RGBColor(245, 245, 245),
    }
}

/// A bar for each row, divided by outcomes.
pub fn outcomes(rows: &[Row]) -> Result<String, Error> {
    let mut text = String::new();
    {
        let height = LINE * (rows.len() as i32 + 2);
        let root = SVGBackend::with_string(&mut text, (WIDTH as u32, height as u32)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut x = LEFT;
        for outcome in judge::ALL {
            root.draw(&Rectangle::new([(x, 6), (x + 12, 18)], colour(outcome).filled())).map_err(failed)?;
            root.draw(&Text::new(outcome.name(), (x + 16, 6), FONT.into_font())).map_err(failed)?;
            x += 24 + 7 * outcome.name().len() as i32;
        }
        for (at, row) in rows.iter().enumerate() {
            let y = LINE * (at as i32 + 1) + 8;
            let name = format!("{}: {} ({})", row.setting, row.class(), row.injected);
            root.draw(&Text::new(name, (4, y + 2), FONT.into_font())).map_err(failed)?;
            let mut before = 0;
            for outcome in judge::ALL {
                let place = |count: usize| LEFT + (WIDTH - LEFT - 10) * count as i32 / row.injected.max(1) as i32;
                let (from, to) = (place(before), place(before + row.of(outcome)));
                before += row.of(outcome);
                if to > from {
                    root.draw(&Rectangle::new([(from, y), (to, y + LINE - 6)], colour(outcome).filled()))
                        .map_err(failed)?;
                }
            }
        }
        root.present().map_err(failed)?;
    }
    Ok(text)
}

/// Which share of detections and recoveries took no longer than so much; none if there was none.
pub fn latencies(experiments: &[Experiment]) -> Result<Option<String>, Error> {
    let times = |of: fn(&Reaction) -> Option<f64>| {
        let mut all: Vec<f64> =
            experiments.iter().filter_map(|e| e.outlast.as_ref().and_then(of)).filter(|time| *time > 0.0).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let series = [
        ("from fault to detection", times(|r| r.detected_us), RGBColor(0, 90, 180)),
        ("recovery", times(|r| r.recovery_us), RGBColor(190, 80, 0)),
    ];
    let all = series.iter().flat_map(|(_, times, _)| times).copied();
    let (low, high) = all.fold((f64::MAX, 0.0_f64), |(low, high), time| (low.min(time), high.max(time)));
    if high <= 0.0 {
        return Ok(None);
    }
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH as u32, 380)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&root)
            .margin(10)
            .x_label_area_size(42)
            .y_label_area_size(55)
            .build_cartesian_2d((low * 0.8..high * 1.2).log_scale(), 0.0..100.0)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc("µs")
            .y_desc("% of all")
            .label_style(FONT)
            .axis_desc_style(FONT)
            .x_label_formatter(&|micros| format!("{micros:.0}"))
            .draw()
            .map_err(failed)?;
        for (name, times, colour) in &series {
            let whole = times.len() as f64;
            let steps = times.iter().enumerate().map(|(at, time)| (*time, 100.0 * (at + 1) as f64 / whole));
            chart
                .draw_series(LineSeries::new(steps, colour.stroke_width(2)))
                .map_err(failed)?
                .label(format!("{name} ({})", times.len()))
                .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE)
            .border_style(BLACK)
            .label_font(FONT)
            .draw()
            .map_err(failed)?;
        root.present().map_err(failed)?;
    }
    Ok(Some(text))
}
