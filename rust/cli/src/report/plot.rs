//! The pictures: what is drawn of the measurements, as SVG whose colours are the page's.

use super::{HistogramBin, Point, label};
use crate::bench::{Candidate, Entry};
use crate::compare_strategies;
use crate::latency;
use crate::output;
use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _};
use plotters::element::{Circle, EmptyElement, PathElement, Rectangle, Text};
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, IntoTextStyle as _, RGBColor, TextStyle};
use resolver_types::{STAGES, Stage};
use resolver_workloads::retention::BatchTimes;
use std::io;
use std::ops::Range;

/// Width of a picture in its own units; the page scales it.
const WIDTH: u32 = 960;

/// Size of text, in the library's measure.
const TEXT: u32 = 18;

/// What the library would have the picture say for programs that take it alone.
const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// Colours as they are drawn, which stand for those of the page: see [`svg`].
const INK: RGBColor = RGBColor(1, 1, 1);
const GRID: RGBColor = RGBColor(2, 2, 2);
const TREE: RGBColor = RGBColor(3, 3, 3);
const LIST: RGBColor = RGBColor(4, 4, 4);
const MARK: RGBColor = RGBColor(5, 5, 5);
const PHASES: [RGBColor; STAGES.len()] = [
    RGBColor(11, 11, 11),
    RGBColor(12, 12, 12),
    RGBColor(13, 13, 13),
    RGBColor(14, 14, 14),
    RGBColor(15, 15, 15),
    RGBColor(16, 16, 16),
];

/// What the page calls the colours that are no phase's.
const NAMED: [(RGBColor, &str); 5] =
    [(INK, "ink"), (GRID, "grid"), (TREE, "tree"), (LIST, "list"), (MARK, "mark")];

/// Letters that fit beside a row.
const NAME_LETTERS: usize = 24;

type Root<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;
type Plane<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

/// Draws a picture and leaves its colours to the page's variables.
fn svg(height: u32, draw: impl FnOnce(&Root<'_>) -> Drawn) -> String {
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
    draw(&root).and_then(|()| root.present()).expect("a picture is drawn in memory");
    drop(root);
    let named = NAMED.into_iter().map(|(colour, name)| (colour, name.to_owned()));
    let phases = PHASES.into_iter().zip(STAGES).map(|(colour, stage)| (colour, phase_variable(stage.name())));
    named.chain(phases).fold(text.replace(NAMESPACE, ""), |text, (RGBColor(r, g, b), name)| {
        text.replace(&format!("\"#{r:02X}{g:02X}{b:02X}\""), &format!("\"var(--{name})\""))
    })
}

/// The name of a phase's colour on the page.
pub(super) fn phase_variable(stage: &str) -> String {
    stage.replace('_', "-")
}

fn text(horizontal: HPos) -> TextStyle<'static> {
    ("sans-serif", TEXT).into_text_style(&(WIDTH, WIDTH)).color(&INK).pos(Pos::new(horizontal, VPos::Center))
}

/// The name of a row, cut where it does not fit.
fn row_name(name: &str) -> Text<'static, (i32, i32), String> {
    let mut shown: String = name.chars().take(NAME_LETTERS).collect();
    if shown.len() < name.len() {
        shown.pop();
        shown.push('\u{2026}');
    }
    Text::new(shown, (-8, 0), text(HPos::Right))
}

/// One axis: its name, its range, where it is marked, and with what.
struct Axis {
    name: &'static str,
    range: Range<f64>,
    logarithmic: bool,
    ticks: Vec<f64>,
    label: fn(f64) -> String,
}

impl Axis {
    /// From 0 on, marked at round steps, about ten of them.
    fn linear(name: &'static str, end: f64) -> Axis {
        let end = if end > 0.0 { end } else { 1.0 };
        let rough = end / 10.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].into_iter().map(|step| step * power).find(|&step| step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let ticks = (0..).map(|nth| f64::from(nth) * step).take_while(|&tick| tick <= end * (1.0 + 1e-9));
        Axis { name, range: 0.0..end, logarithmic: false, ticks: ticks.collect(), label: short }
    }

    /// Over a range above 0, marked at 1, 2 and 5 times the powers of ten.
    fn logarithmic(name: &'static str, range: Range<f64>) -> Axis {
        let decades = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
        let all = decades.flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)));
        let ticks = all.filter(|tick| range.contains(tick)).collect();
        Axis { name, range, logarithmic: true, ticks, label: short }
    }

    /// Rows from the top down, without marks.
    fn rows(rows: usize) -> Axis {
        Axis { name: "", range: rows as f64..0.0, logarithmic: false, ticks: Vec::new(), label: short }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let place = |value: f64| if self.logarithmic { value.ln() } else { value };
        let (start, end) = (place(self.range.start), place(self.range.end));
        from + (f64::from(to - from) * (place(*value) - start) / (end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        (self.label)(*value)
    }
}

/// A number without needless digits.
fn short(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Two axes with a grid; where there are rows, room for their names at the left, and for values at the right.
fn plane<'a>(root: &Root<'a>, x: Axis, y: Axis) -> Result<Plane<'a>, DrawingAreaErrorKind<io::Error>> {
    let (x_name, y_name) = (x.name, y.name);
    let rows = y.ticks.is_empty();
    let mut plane = ChartBuilder::on(root)
        .margin_top(16)
        .margin_right(if rows { 90 } else { 30 })
        .margin_left(8)
        .margin_bottom(10)
        .x_label_area_size(56)
        .y_label_area_size(if rows { 190 } else { 78 })
        .build_cartesian_2d(x, y)?;
    let mut mesh = plane.configure_mesh();
    mesh.axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(GRID.mix(0.0))
        .label_style(("sans-serif", TEXT, &INK))
        .axis_desc_style(("sans-serif", TEXT, &INK))
        .x_desc(x_name);
    if rows {
        mesh.disable_y_mesh().disable_y_axis();
    } else {
        mesh.y_desc(y_name);
    }
    mesh.draw()?;
    Ok(plane)
}

/// A workload that was measured of both.
pub(super) struct Pair<'a> {
    pub(super) name: &'a str,
    pub(super) entry: &'a Entry,
    pub(super) ratio: f64,
}

/// Per workload a bar as long as the ratio, a ring for every round, and the mark of equal times.
pub(super) fn ratios(pairs: &[Pair<'_>]) -> String {
    let rows = pairs.len() as f64;
    let all = pairs.iter().flat_map(|pair| pair.entry.rounds.iter().copied());
    let end = all.fold(1.0, f64::max) * 1.05;
    svg(80 + 34 * pairs.len() as u32, |root| {
        let x = Axis::linear("time of a batch: the tree's over the skip list's (1 = equally fast)", end);
        let mut plane = plane(root, x, Axis::rows(pairs.len()))?;
        for (row, &Pair { name, entry, ratio }) in pairs.iter().enumerate() {
            let middle = row as f64 + 0.5;
            plane.draw_series([Rectangle::new(
                [(0.0, row as f64 + 0.2), (ratio, row as f64 + 0.8)],
                TREE.filled(),
            )])?;
            plane.draw_series(
                entry.rounds.iter().map(|&round| Circle::new((round, middle), 4, INK.stroke_width(2))),
            )?;
            plane.draw_series([EmptyElement::at((0.0, middle)) + row_name(name)])?;
            let value = Text::new(format!("{ratio:.3}x"), (8, 0), text(HPos::Left));
            plane.draw_series([EmptyElement::at((end, middle)) + value])?;
        }
        plane.draw_series([PathElement::new([(1.0, 0.0), (1.0, rows)], LIST.stroke_width(3))])?;
        Ok(())
    })
}

/// Per workload two bars, the skip list's and the tree's, of what each phase takes in parts of the skip list's whole.
pub(super) fn phases(pairs: &[Pair<'_>]) -> String {
    let total = |candidate: &Candidate| candidate.phases.values().iter().sum::<f64>();
    let share = |entry: &Entry, time: f64| 100.0 * time / total(&entry.candidates[1]);
    let longest =
        pairs.iter().map(|pair| share(pair.entry, total(&pair.entry.candidates[0]))).fold(100.0, f64::max);
    let end = longest * 1.02;
    svg(80 + 56 * pairs.len() as u32, |root| {
        let x = Axis::linear("time, in % of what all phases of the skip list take", end);
        let mut plane = plane(root, x, Axis::rows(pairs.len()))?;
        for (row, &Pair { name, entry, .. }) in pairs.iter().enumerate() {
            for (candidate, top) in entry.candidates.iter().zip([0.12, 0.5]) {
                let (mut from, top) = (0.0, row as f64 + top);
                for (colour, time) in PHASES.into_iter().zip(candidate.phases.values()) {
                    let to = from + share(entry, time);
                    plane.draw_series([Rectangle::new([(from, top), (to, top + 0.34)], colour.filled())])?;
                    from = to;
                }
                let name = Text::new(candidate.name.clone(), (6, 0), text(HPos::Left));
                plane.draw_series([EmptyElement::at((from, top + 0.17)) + name])?;
            }
            plane.draw_series([EmptyElement::at((0.0, row as f64 + 0.48)) + row_name(name)])?;
        }
        Ok(())
    })
}

/// Per workload a bar for every strategy, as long as its time over the pipelined one's.
pub(super) fn strategies(entries: &[compare_strategies::Entry]) -> String {
    let all = || entries.iter().flat_map(|entry| &entry.candidates);
    let rows = all().count();
    let end = all().map(|candidate| candidate.ratio).fold(1.0, f64::max) * 1.35;
    svg(80 + 26 * rows as u32, |root| {
        let mut plane =
            plane(root, Axis::linear("time over the pipelined strategy's", end), Axis::rows(rows))?;
        let mut top = 0.0;
        for entry in entries {
            let name = row_name(label(&entry.workload));
            plane.draw_series([EmptyElement::at((0.0, top + 0.5)) + name])?;
            for candidate in &entry.candidates {
                let corners = [(0.0, top + 0.15), (candidate.ratio, top + 0.85)];
                plane.draw_series([Rectangle::new(corners, TREE.filled())])?;
                let value = format!("{:.2}x {}", candidate.ratio, candidate.name());
                let value = Text::new(value, (6, 0), text(HPos::Left));
                plane.draw_series([EmptyElement::at((candidate.ratio, top + 0.5)) + value])?;
                top += 1.0;
            }
            plane.draw_series([PathElement::new([(0.0, top), (end, top)], GRID.stroke_width(1))])?;
        }
        plane.draw_series([PathElement::new([(1.0, 0.0), (1.0, rows as f64)], INK.stroke_width(1))])?;
        Ok(())
    })
}

/// What is drawn of every point.
struct Line<'a> {
    colour: RGBColor,
    value: &'a dyn Fn(&Point) -> f64,
}

/// Lines over the seconds of the trace, and a limit across.
fn over_time(
    points: &[Point],
    end_y: f64,
    name: &'static str,
    lines: &[Line<'_>],
    limit: Option<f64>,
) -> String {
    let end = points.last().map_or(1.0, |point| point.seconds).max(1.0);
    svg(370, |root| {
        let mut plane = plane(root, Axis::linear("seconds of the trace", end), Axis::linear(name, end_y))?;
        if let Some(limit) = limit {
            plane.draw_series(DashedLineSeries::new(
                [(0.0, limit), (end, limit)],
                8,
                6,
                INK.stroke_width(2),
            ))?;
        }
        for line in lines {
            let places = points.iter().map(|point| (point.seconds, (line.value)(point)));
            plane.draw_series(LineSeries::new(places, line.colour.stroke_width(3)))?;
        }
        Ok(())
    })
}

/// How many seconds of history each holds, over the seconds of the trace.
pub(super) fn retained(points: &[Point], skip_list_seconds: Option<f64>) -> String {
    let tree = |point: &Point| point.retained_seconds.unwrap_or(point.seconds);
    let list = |point: &Point| skip_list_seconds.map_or(0.0, |window| window.min(point.seconds));
    let end = points.iter().map(tree).fold(1.0, f64::max) * 1.1;
    let lines = [Line { colour: LIST, value: &list }, Line { colour: TREE, value: &tree }];
    let lines = if skip_list_seconds.is_some() { &lines[..] } else { &lines[1..] };
    over_time(points, end, "seconds of history held", lines, None)
}

/// What the tree holds, over the seconds of the trace, below the budget.
pub(super) fn memory(points: &[Point], budget_bytes: u64) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let tree = |point: &Point| mib(point.memory_bytes);
    let budget = mib(budget_bytes);
    over_time(points, budget * 1.15, "memory held, MiB", &[Line { colour: TREE, value: &tree }], Some(budget))
}

/// How many batches took how long, with the times that are named.
pub(super) fn histogram(bins: &[HistogramBin], times: &BatchTimes) -> String {
    let end = bins.last().map_or(1.0, |bin| bin.to_us) / 1e3;
    let most = bins.iter().map(|bin| bin.batches).max().unwrap_or(1) as f64;
    svg(410, |root| {
        // Room above the bars for a row of text for every named time.
        let (bottom, top) = (0.7, (most * 2.0).max(10.0) * most.max(10.0).powf(0.45));
        let mut y = Axis::logarithmic("batches (logarithmic)", bottom..top);
        y.ticks.retain(|&tick| (1.0..most * 1.5).contains(&tick));
        let mut plane = plane(root, Axis::linear("time of a batch, ms", end), y)?;
        plane.draw_series(bins.iter().filter(|bin| bin.batches > 0).map(|bin| {
            let corners = [(bin.from_us / 1e3, bottom), (bin.to_us / 1e3, bin.batches as f64)];
            Rectangle::new(corners, TREE.filled())
        }))?;
        let named = [
            ("median", times.median_us),
            ("p99", times.p99_us),
            ("p99.9", times.p999_us),
            ("longest", times.max_us),
            ("three medians", 3.0 * times.median_us),
        ];
        for (nth, (name, micros)) in named.into_iter().enumerate() {
            let at = (micros / 1e3).min(end);
            let height = top * (bottom / top).powf(0.03 + 0.062 * nth as f64);
            plane.draw_series([PathElement::new([(at, bottom), (at, height)], MARK.stroke_width(1))])?;
            // Towards the middle, so that it stays inside.
            let (offset, side) = if at < end / 2.0 { (6, HPos::Left) } else { (-6, HPos::Right) };
            let label =
                Text::new(format!("{name} {}", output::seconds(micros / 1e6)), (offset, 0), text(side));
            plane.draw_series([EmptyElement::at((at, height)) + label])?;
        }
        Ok(())
    })
}

/// What a load costs, by memory, both on logarithmic axes.
pub(super) fn latency(rows: &[latency::Row]) -> String {
    let all = || rows.iter().flat_map(|row| [Some(row.ordinary_ns), row.huge_ns]).flatten();
    let ns = all().fold(f64::INFINITY, f64::min).max(0.01) * 0.8..all().fold(1.0, f64::max) * 1.3;
    let sizes = || rows.iter().map(|row| row.bytes as f64);
    let memory = sizes().fold(f64::INFINITY, f64::min) * 0.8..sizes().fold(2.0, f64::max) * 1.3;
    svg(390, |root| {
        let mut x = Axis::logarithmic("memory that is chased through (logarithmic)", memory);
        x.ticks = sizes().step_by(rows.len().div_ceil(8).max(1)).collect();
        x.label = |bytes| output::bytes(bytes as u64).replace(".0 ", " ");
        let mut plane = plane(root, x, Axis::logarithmic("ns a load (logarithmic)", ns))?;
        let ordinary: Vec<_> = rows.iter().map(|row| (row.bytes as f64, row.ordinary_ns)).collect();
        let huge: Vec<_> = rows.iter().filter_map(|row| Some((row.bytes as f64, row.huge_ns?))).collect();
        for (points, colour) in [(ordinary, MARK), (huge, PHASES[Stage::WithinBatch as usize])] {
            plane.draw_series(points.iter().map(|&point| Circle::new(point, 4, colour.filled())))?;
            plane.draw_series(LineSeries::new(points, colour.stroke_width(3)))?;
        }
        Ok(())
    })
}
