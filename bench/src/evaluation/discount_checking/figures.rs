//! Figures 2 and 3 as pictures (SVG).

use super::paper;
use super::results::{Computation, Point, Results};
use super::summary::IntervalSummary;
use crate::statistics::Summary;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

type Drawn = Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const FONT: (&str, u32) = ("sans-serif", 15);
const PAPER: RGBColor = RGBColor(150, 150, 150);
const OURS: [RGBColor; 3] = [RGBColor(0, 90, 180), RGBColor(0, 140, 80), RGBColor(190, 80, 0)];

/// Microseconds a commit against bytes touched, both logarithmic, beside the paper's line.
pub fn commits(results: &Results) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (860, 560)).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("Figure 2: what a commit costs after so many bytes were touched", ("sans-serif", 19))
            .margin(12)
            .x_label_area_size(45)
            .y_label_area_size(75)
            .build_cartesian_2d((3000_f64..24e6).log_scale().base(4.0), (0.3_f64..400_000.0).log_scale())?;
        chart
            .configure_mesh()
            .x_desc("bytes touched between two commits")
            .y_desc("added to a turn, µs")
            .x_label_formatter(&|bytes| size(*bytes as u64))
            .y_label_formatter(&|micros| format!("{micros}"))
            .label_style(FONT)
            .axis_desc_style(FONT)
            .draw()?;
        let bytes = (12..=24).map(|power| 1_u64 << power);
        chart
            .draw_series(LineSeries::new(bytes.map(|b| (b as f64, paper::checkpoint_us(b))), PAPER.stroke_width(3)))?
            .label("the paper, from its text (400 MHz, 1998)")
            .legend(|at| stroke(at, PAPER));
        let stated = paper::STATED_POINTS.iter().map(|&(bytes, micros)| (bytes as f64, micros));
        chart.draw_series(stated.map(|at| Circle::new(at, 6, PAPER.filled())))?;
        for (sweep, colour) in results.commits.entries.iter().zip(OURS) {
            let line: Vec<(f64, f64)> = sweep.points.iter().filter_map(above_nothing).collect();
            chart
                .draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?
                .label(sweep.pattern.describe())
                .legend(move |at| stroke(at, colour));
            chart.draw_series(line.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
        }
        legend(&mut chart)?;
        root.present()?;
    }
    Ok(text)
}

/// A median that a logarithmic scale can show.
fn above_nothing(point: &Point) -> Option<(f64, f64)> {
    let median = point.added_us()?.median;
    (median > 0.0).then_some((point.bytes as f64, median))
}

/// Overhead and size of the log against the interval, for each computation.
pub fn computations(results: &Results) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (1000, 760)).into_drawing_area();
        root.fill(&WHITE)?;
        let body = root.titled("Figure 3: computations that commit at intervals", ("sans-serif", 19))?;
        let panels = body.split_evenly((2, 2));
        for (i, computation) in results.computations.entries.iter().take(2).enumerate() {
            let summaries = computation.summaries();
            overhead(&panels[i], computation, &summaries)?;
            log(&panels[i + 2], &summaries)?;
        }
        root.present()?;
    }
    Ok(text)
}

fn seconds(at: &IntervalSummary) -> f64 {
    at.interval_ms as f64 / 1e3
}

fn overhead(panel: &Area, computation: &Computation, summaries: &[IntervalSummary]) -> Drawn {
    let both = |at: &IntervalSummary| [at.elapsed.quartiles, at.processor.quartiles].concat();
    let all = summaries.iter().flat_map(both).chain([0.0, paper::EVERY_SECOND[1]]);
    let (low, high) = all.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let paper_name = paper::FIGURE_3.iter().find(|(_, ours)| *ours == computation.name).map_or("", |(name, _)| name);
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("{}, for {paper_name}", computation.name), ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(42)
        .y_label_area_size(55)
        .build_cartesian_2d((0.008_f64..3.0).log_scale(), low * 1.1 - 0.5..high * 1.5 + 0.5)?;
    mesh(&mut chart, "overhead, %")?;
    type Kind = (&'static str, fn(&IntervalSummary) -> &Summary);
    let kinds: [Kind; 2] = [("elapsed time", |at| &at.elapsed), ("processor time", |at| &at.processor)];
    for ((label, of), colour) in kinds.into_iter().zip(OURS) {
        let line = summaries.iter().map(|at| (seconds(at), of(at).median));
        chart
            .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
            .label(format!("{label}, median and quartiles"))
            .legend(move |at| stroke(at, colour));
        chart.draw_series(summaries.iter().map(|at| {
            let Summary { median, quartiles: [low, high], .. } = *of(at);
            ErrorBar::new_vertical(seconds(at), low, median, high, colour.filled(), 6)
        }))?;
    }
    let [low, high] = paper::EVERY_SECOND;
    let bar = ErrorBar::new_vertical(1.0, low, (low + high) / 2.0, high, PAPER.stroke_width(5), 14);
    chart.draw_series([bar])?.label("the paper, once a second: 6 to 10 %").legend(|at| stroke(at, PAPER));
    legend(&mut chart)
}

fn log(panel: &Area, summaries: &[IntervalSummary]) -> Drawn {
    let kib = |summary: &Summary| summary.median / 1024.0;
    let high = summaries.iter().map(|at| kib(&at.log_largest)).fold(8.0, f64::max);
    // A run that ended before its first commit has logged nothing, which a logarithmic scale cannot show.
    let logged: Vec<_> = summaries.iter().filter(|at| kib(&at.log_average) >= 4.0).collect();
    let mut chart = ChartBuilder::on(panel)
        .margin(10)
        .x_label_area_size(42)
        .y_label_area_size(75)
        .build_cartesian_2d((0.008_f64..3.0).log_scale(), (4.0..high * 8.0).log_scale())?;
    mesh(&mut chart, "log, KiB a commit")?;
    type Kind = (&'static str, fn(&IntervalSummary) -> &Summary);
    let kinds: [Kind; 2] = [("mean", |at| &at.log_average), ("largest", |at| &at.log_largest)];
    for ((label, of), colour) in kinds.into_iter().zip(OURS) {
        let line: Vec<_> = logged.iter().map(|at| (seconds(at), kib(of(at)))).collect();
        chart
            .draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?
            .label(label)
            .legend(move |at| stroke(at, colour));
        chart.draw_series(line.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
    }
    legend(&mut chart)
}

fn mesh<'a, X, Y>(chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>, what: &str) -> Drawn
where
    X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .x_desc("interval, s")
        .y_desc(what)
        .x_label_formatter(&|seconds| format!("{seconds}"))
        .label_style(FONT)
        .axis_desc_style(FONT)
        .draw()?;
    Ok(())
}

fn legend<'a, X, Y>(chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let mut labels = chart.configure_series_labels();
    labels
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(PAPER)
        .label_font(FONT);
    labels.draw()?;
    Ok(())
}

fn stroke((x, y): (i32, i32), colour: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(3))
}

/// As people say it: `64 KB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes >> 10),
        _ => format!("{} MB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn a_picture_has_every_series() {
        let results = example::results();
        let picture = commits(&results).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{picture}");
        assert!(picture.contains("every byte of the same pages") && picture.contains("from its text"), "{picture}");
        let picture = computations(&results).unwrap();
        assert!(picture.contains("cjpeg, for ijpeg") && picture.contains("largest"), "{picture}");
    }

    #[test]
    fn nothing_measured_is_an_empty_picture_and_no_panic() {
        let mut results = example::results();
        results.commits.entries.clear();
        results.computations.entries[0].rounds.clear();
        commits(&results).unwrap();
        computations(&results).unwrap();
    }

    #[test]
    fn sizes_are_said_in_powers_of_two() {
        assert_eq!([4096, 1 << 20, 16 << 20].map(size), ["4 KB", "1 MB", "16 MB"]);
    }
}
