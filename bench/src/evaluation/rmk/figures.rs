//! Figure 9 as a picture (SVG).

use super::confidence::Mean;
use super::results::{Load, Results, Served};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

const FONT: (&str, u32) = ("sans-serif", 15);
const GREY: RGBColor = RGBColor(150, 150, 150);
const COLOURS: [RGBColor; 6] = [
    RGBColor(90, 90, 90),
    RGBColor(150, 60, 150),
    RGBColor(190, 80, 0),
    RGBColor(0, 140, 80),
    RGBColor(0, 90, 180),
    RGBColor(170, 20, 40),
];

/// Throughput and response time against clients.
pub fn throughput(results: &Results) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (1000, 430)).into_drawing_area();
        root.fill(&WHITE)?;
        let body = root.titled("Figure 9: a server under clients that ask without pause", ("sans-serif", 19))?;
        let panels = body.split_evenly((1, 2));
        panel(&panels[0], results, "thousand replies a second", &|run| run.requests / run.seconds / 1e3)?;
        panel(&panels[1], results, "mean response time, µs", &|run| run.mean_us)?;
        root.present()?;
    }
    Ok(text)
}

/// A line of one kind of modules: clients and the mean.
fn line(load: &Load, of: &dyn Fn(&Served) -> f64) -> Vec<(f64, f64)> {
    let mean = |runs: &[Served]| Mean::of(&runs.iter().map(of).collect::<Vec<_>>());
    load.points.iter().filter_map(|point| Some((f64::from(point.clients), mean(&point.runs)?.mean))).collect()
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    results: &Results,
    what: &str,
    of: &dyn Fn(&Served) -> f64,
) -> Result<(), Box<dyn Error>> {
    let loads = &results.loads.entries;
    let high = loads.iter().flat_map(|load| line(load, of)).map(|at| at.1).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(42)
        .y_label_area_size(65)
        .build_cartesian_2d(10.0..110.0, 0.0..high * 1.45)?;
    chart
        .configure_mesh()
        .x_desc("clients")
        .y_desc(what)
        .x_label_formatter(&|clients| format!("{clients}"))
        .label_style(FONT)
        .axis_desc_style(FONT)
        .draw()?;
    for (load, colour) in loads.iter().zip(COLOURS) {
        let line = line(load, of);
        chart
            .draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?
            .label(load.modules.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(3)));
        chart.draw_series(line.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
    }
    let mut labels = chart.configure_series_labels();
    labels
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(GREY)
        .label_font(FONT);
    labels.draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;

    #[test]
    fn a_picture_has_every_kind_of_modules() {
        let picture = throughput(&example()).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{picture}");
        assert!(picture.contains("visible") && picture.contains("clients"), "{picture}");
    }

    #[test]
    fn nothing_measured_is_an_empty_picture_and_no_panic() {
        let mut results = example();
        results.loads.entries.clear();
        throughput(&results).unwrap();
    }
}
