//! Line charts. The lines are an SVG that is stretched to the available space. Texts are HTML above it, so that they
//! have the same size on a phone and on a desktop.

use crate::html::Html;
use crate::numbers::ticks;

/// The SVG's width and height in its own units.
const UNITS: f64 = 1000.0;
/// Maximum points per line. Longer lines are averaged.
const POINTS_MAX: usize = 240;
/// Maximum positions at which a pointer shows values.
const STOPS_MAX: usize = 48;

/// Limits of a quantity without limits.
pub const UNLIMITED: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
/// Limits of a quantity that is never negative.
pub const FROM_ZERO: (f64, f64) = (0.0, f64::INFINITY);
/// Limits of a fraction.
pub const SHARE: (f64, f64) = (0.0, 1.0);

/// A chart.
pub struct Chart<'a> {
    /// Title of the chart.
    pub title: &'a str,
    /// Explanation next to the title.
    pub note: &'a str,
    /// Label of the x axis.
    pub x_label: &'a str,
    /// Range of the y axis, if it is fixed.
    pub y_range: Option<(f64, f64)>,
    /// Whether the y axis starts at 0.
    pub from_zero: bool,
    /// Limits of the y quantity, which the axis does not exceed.
    pub y_limits: (f64, f64),
    /// Range of the x axis, if it is fixed.
    pub x_range: Option<(f64, f64)>,
    /// Label of a diagonal that shows a random or a perfect model, if it is drawn.
    pub diagonal: Option<&'a str>,
    /// Formats values of the y axis.
    pub y_text: fn(f64) -> String,
    /// Formats values of the x axis.
    pub x_text: fn(f64) -> String,
    /// The lines.
    pub lines: Vec<Series>,
}

/// One line.
pub struct Series {
    /// Index of the run, which determines the colour.
    pub run: usize,
    /// Name of the run, if there are several.
    pub of: String,
    /// Name of the quantity, if there are several.
    pub what: String,
    /// Style of the line.
    pub style: Style,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Style of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line.
    Line,
    /// A faint line behind the others.
    Faint,
    /// A line with a dot at each point.
    Dots,
    /// Circles without a line.
    Rings,
    /// A dashed line with a dot at each point.
    Dashes,
}

impl Style {
    fn class(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Faint => "line faint",
            Self::Dots => "line dots",
            Self::Rings => "rings",
            Self::Dashes => "line dashes",
        }
    }
}

impl Series {
    fn name(&self) -> String {
        match (&*self.of, &*self.what) {
            (of, "") => of.to_owned(),
            ("", what) => what.to_owned(),
            (of, what) => format!("{of}, {what}"),
        }
    }
}

/// Maps values to positions on the chart.
struct Frame {
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn x(&self, x: f64) -> f64 {
        ((x - self.x.0) / (self.x.1 - self.x.0)).clamp(0.0, 1.0)
    }

    fn y(&self, y: f64) -> f64 {
        ((y - self.y.0) / (self.y.1 - self.y.0)).clamp(0.0, 1.0)
    }
}

impl Chart<'_> {
    /// Draws the chart, unless it has no points.
    pub fn draw(mut self, html: &mut Html) {
        for line in &mut self.lines {
            line.points.retain(|(x, y)| x.is_finite() && y.is_finite());
        }
        self.lines.retain(|line| !line.points.is_empty());
        if self.lines.is_empty() {
            return;
        }
        let frame = self.frame();
        html.class("figure", "chart", |html| {
            html.element("figcaption", &[], |html| {
                html.leaf("strong", &[], self.title);
                html.leaf("span", &[], self.note);
            });
            html.element(
                "div",
                &[("class", "plot"), ("role", "img"), ("aria-label", &self.described())],
                |html| {
                    self.y_axis(&frame, html);
                    html.class("div", "area", |html| {
                        self.svg(&frame, html);
                        self.stops(&frame, html);
                    });
                    self.x_axis(&frame, html);
                },
            );
            if self.lines.len() > 1 || self.diagonal.is_some() {
                self.legend(html);
            }
        });
    }

    fn frame(&self) -> Frame {
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let ends = |of: fn(&(f64, f64)) -> f64| {
            all().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let widened =
            |(low, high): (f64, f64)| if high > low { (low, high) } else { (low - 0.5, high + 0.5) };
        let x = self.x_range.unwrap_or_else(|| widened(ends(|point| point.0)));
        let y = self.y_range.unwrap_or_else(|| {
            let (low, high) = widened(ends(|point| point.1));
            let room = 0.06 * (high - low);
            let (least, most) = self.y_limits;
            let low = if self.from_zero { 0.0 } else { low - room };
            (low.max(least), (high + room).min(most))
        });
        Frame { x: widened(x), y: widened(y) }
    }

    /// A text description of the chart: start and end of each line.
    fn described(&self) -> String {
        let mut text = format!("{} over {}.", self.title, self.x_label);
        for line in &self.lines {
            let (first, last) = (line.points[0], line.points[line.points.len() - 1]);
            text += &format!(
                " {}: from {} at {} to {} at {}.",
                line.name(),
                (self.y_text)(first.1),
                (self.x_text)(first.0),
                (self.y_text)(last.1),
                (self.x_text)(last.0)
            );
        }
        text
    }

    fn y_axis(&self, frame: &Frame, html: &mut Html) {
        html.class("div", "ys", |html| {
            for tick in ticks(frame.y.0, frame.y.1, 4) {
                let place = format!("bottom:{:.2}%", 100.0 * frame.y(tick));
                html.leaf("span", &[("style", &place)], &(self.y_text)(tick));
            }
        });
    }

    fn x_axis(&self, frame: &Frame, html: &mut Html) {
        html.class("div", "xs", |html| {
            for tick in ticks(frame.x.0, frame.x.1, 5) {
                let place = format!("left:{:.2}%", 100.0 * frame.x(tick));
                html.leaf("span", &[("style", &place)], &(self.x_text)(tick));
            }
        });
        html.leaf("div", &[("class", "x-label")], self.x_label);
    }

    fn svg(&self, frame: &Frame, html: &mut Html) {
        let attributes =
            [("viewBox", "0 0 1000 1000"), ("preserveAspectRatio", "none"), ("aria-hidden", "true")];
        html.element("svg", &attributes, |html| {
            for tick in ticks(frame.y.0, frame.y.1, 4) {
                let path = format!("M0 {:.1}H1000", UNITS * (1.0 - frame.y(tick)));
                html.leaf("path", &[("class", "grid"), ("d", &path)], "");
            }
            if self.diagonal.is_some() {
                html.leaf("path", &[("class", "diagonal"), ("d", "M0 1000L1000 0")], "");
            }
            for line in &self.lines {
                let points = thinned(&line.points);
                let place = |point: &(f64, f64)| {
                    format!("{:.1} {:.1}", UNITS * frame.x(point.0), UNITS * (1.0 - frame.y(point.1)))
                };
                let dots = || points.iter().map(|point| format!("M{}h0", place(point))).collect::<String>();
                let mut draw = |class: &str, path: &str| {
                    let class = format!("{class} {}", color(line.run));
                    html.leaf("path", &[("class", &class), ("d", path)], "");
                };
                if line.style == Style::Rings {
                    draw("ring", &dots());
                    draw("hole", &dots());
                    continue;
                }
                let path = points.iter().map(place).collect::<Vec<_>>().join("L");
                draw(line.style.class(), &format!("M{path}"));
                if matches!(line.style, Style::Dots | Style::Dashes) || points.len() == 1 {
                    draw("dot", &dots());
                }
            }
        });
    }

    /// Vertical bands that show the values of all lines under the pointer.
    fn stops(&self, frame: &Frame, html: &mut Html) {
        let mut all: Vec<f64> =
            self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup_by(|one, other| (frame.x(*one) - frame.x(*other)).abs() < 1.0 / STOPS_MAX as f64);
        let places: Vec<f64> = all.iter().map(|&x| frame.x(x)).collect();
        for (at, &x) in all.iter().enumerate() {
            let from = if at == 0 { 0.0 } else { f64::midpoint(places[at - 1], places[at]) };
            let to = places.get(at + 1).map_or(1.0, |next| f64::midpoint(*next, places[at]));
            let side = if places[at] > 0.5 { "stop left" } else { "stop" };
            let style = format!(
                "left:{:.2}%;width:{:.2}%;--at:{:.1}%",
                100.0 * from,
                100.0 * (to - from),
                100.0 * (places[at] - from) / (to - from).max(1e-9)
            );
            html.element("div", &[("class", side), ("style", &style)], |html| {
                html.class("div", "tip", |html| {
                    html.leaf("b", &[], &format!("{} {}", self.x_label, (self.x_text)(x)));
                    for line in &self.lines {
                        let Some(point) = nearest(&line.points, x) else { continue };
                        html.class("span", color(line.run), |html| {
                            html.markup("<i></i>");
                            html.text(&line.name());
                            html.leaf("em", &[], &(self.y_text)(point.1));
                        });
                    }
                });
            });
        }
    }

    /// Lists each run with its colour and each quantity with its style, once.
    fn legend(&self, html: &mut Html) {
        let is_first = |at: usize, same: fn(&Series, &Series) -> bool| {
            !self.lines[..at].iter().any(|earlier| same(earlier, &self.lines[at]))
        };
        let has_kinds = (0..self.lines.len()).any(|at| self.lines[at].style != self.lines[0].style);
        html.class("ul", "legend", |html| {
            for (at, line) in self.lines.iter().enumerate() {
                if !line.of.is_empty() && is_first(at, |one, other| one.run == other.run) {
                    html.class("li", color(line.run), |html| {
                        html.markup("<i class=\"swatch\"></i>");
                        html.text(&if has_kinds { line.of.clone() } else { line.name() });
                    });
                }
            }
            for (at, line) in self.lines.iter().enumerate() {
                let is_kind = line.of.is_empty() || has_kinds;
                if is_kind && !line.what.is_empty() && is_first(at, |one, other| one.what == other.what) {
                    html.class("li", if line.of.is_empty() { color(line.run) } else { "all" }, |html| {
                        html.class("i", line.style.class(), |_| ());
                        html.text(&line.what);
                    });
                }
            }
            if let Some(diagonal) = self.diagonal {
                html.class("li", "all", |html| {
                    html.markup("<i class=\"diagonal\"></i>");
                    html.text(diagonal);
                });
            }
        });
    }
}

/// CSS class with a run's colour. The eight colours repeat.
pub fn color(run: usize) -> &'static str {
    ["run0", "run1", "run2", "run3", "run4", "run5", "run6", "run7"][run % 8]
}

fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let mean = |points: &[(f64, f64)]| {
        let n = points.len() as f64;
        let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / n, sum.1 / n)
    };
    points.chunks(points.len().div_ceil(POINTS_MAX)).map(mean).collect()
}

fn nearest(points: &[(f64, f64)], x: f64) -> Option<(f64, f64)> {
    points.iter().copied().min_by(|one, other| (one.0 - x).abs().total_cmp(&(other.0 - x).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::short;

    fn drawn(points: Vec<(f64, f64)>) -> String {
        drawn_within(UNLIMITED, points)
    }

    fn drawn_within(y_limits: (f64, f64), points: Vec<(f64, f64)>) -> String {
        let chart = Chart {
            title: "Loss",
            note: "",
            x_label: "epoch",
            y_range: None,
            from_zero: false,
            y_limits,
            x_range: None,
            diagonal: None,
            y_text: short,
            x_text: short,
            lines: vec![Series {
                run: 9,
                of: "<a>".to_owned(),
                what: String::new(),
                style: Style::Line,
                points,
            }],
        };
        let mut html = Html::default();
        chart.draw(&mut html);
        html.finish()
    }

    #[test]
    fn a_line_fills_the_chart() {
        let html = drawn(vec![(0.0, 1.0), (2.0, 0.0)]);
        assert!(html.contains("class=\"line run1\" d=\"M0.0 53.6L1000.0 946.4\""), "{html}");
        assert!(html.contains("Loss over epoch. &lt;a&gt;: from 1 at 0 to 0 at 2."), "{html}");
    }

    #[test]
    fn an_axis_respects_the_limits_of_its_quantity() {
        let points = vec![(0.0, 0.0), (1.0, 0.98), (2.0, 1.0)];
        // From the bottom to the top of the chart.
        assert!(drawn_within(SHARE, points.clone()).contains("d=\"M0.0 1000.0L500.0 20.0L1000.0 0.0\""));
        // With margins below and above.
        assert!(drawn(points.clone()).contains("d=\"M0.0 946.4L"));
        // The same for a horizontal line.
        assert!(drawn_within(SHARE, vec![(0.0, 1.0), (1.0, 1.0)]).contains("d=\"M0.0 0.0L1000.0 0.0\""));
        assert!(drawn_within(FROM_ZERO, points).contains("d=\"M0.0 1000.0L"));
    }

    #[test]
    fn one_point_and_a_horizontal_line_are_drawn_but_not_zero_points() {
        assert!(drawn(vec![(1.0, 0.5)]).contains("M500.0 500.0h0"));
        assert!(!drawn(vec![(1.0, 0.5), (2.0, 0.5)]).contains("NaN"));
        assert_eq!(drawn(vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)]), "");
    }

    #[test]
    fn a_long_line_is_averaged() {
        let many: Vec<(f64, f64)> = (0..10_000).map(|at| (f64::from(at), 1.0)).collect();
        let few = thinned(&many);
        assert!(few.len() <= POINTS_MAX && few.iter().all(|point| point.1 == 1.0));
        assert!(drawn(many).len() < 40_000);
    }
}
