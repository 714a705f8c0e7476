//! The figure: requests a second over the time, with the crashes.

use std::error::Error;

use plotters::prelude::*;

use crate::crashes::Crash;
use crate::results::Measured;

const COLOURS: [RGBColor; 7] = [
    RGBColor(90, 90, 90),
    RGBColor(110, 60, 170),
    RGBColor(0, 90, 180),
    RGBColor(200, 110, 170),
    RGBColor(170, 20, 40),
    RGBColor(190, 80, 0),
    RGBColor(0, 140, 80),
];

/// As SVG; on a logarithmic scale, for the servers are far apart. Tenths of a second are too few requests to be shown one by one: a
/// point is the mean of half a second.
pub fn figure(all: &[Measured], crashes: &[Crash], seconds: f64) -> Result<String, Box<dyn Error>> {
    const TOGETHER: usize = 5;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (1000, 480)).into_drawing_area();
        root.fill(&WHITE)?;
        let means = |measured: &Measured| -> Vec<(f64, f64)> {
            let chunks = measured.over_time.chunks(TOGETHER).enumerate();
            chunks
                .map(|(at, chunk)| {
                    let mean = chunk.iter().sum::<f64>() / chunk.len() as f64;
                    ((at as f64 + 0.5) * TOGETHER as f64 / 10.0, mean)
                })
                .collect()
        };
        let high = all.iter().flat_map(means).map(|point| point.1).fold(10.0, f64::max) * 2.0;
        let low = all.iter().flat_map(means).map(|point| point.1).fold(high, f64::min).max(10.0) / 2.0;
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .caption("Requests a second", ("sans-serif", 19))
            .x_label_area_size(42)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..seconds, (low..high).log_scale())?;
        chart.configure_mesh().x_desc("seconds").y_label_formatter(&|count| format!("{count:.0}")).draw()?;
        for (measured, colour) in all.iter().zip(COLOURS) {
            chart
                .draw_series(LineSeries::new(means(measured), colour.stroke_width(2)))?
                .label(measured.server)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(3)));
        }
        for crash in crashes {
            let at = crash.at as f64 / 1e9;
            let name = Text::new(crash.component, (at, low * 1.3), ("sans-serif", 13));
            chart.draw_series([Cross::new((at, low * 1.15), 5, RED.stroke_width(2))])?;
            chart.draw_series([name])?;
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
        root.present()?;
    }
    Ok(text)
}
