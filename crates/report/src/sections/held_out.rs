//! Evaluation of held-out rows: confusion matrix, metrics of three or more classes, ROC curve, calibration, certainty.

use super::intervals::intervals;
use super::{cell, columns, line_of, part_name, row_of, section, table};
use crate::chart::{Chart, SHARE, Series, Style, color};
use crate::html::Html;
use crate::name::run_name;
use crate::numbers::{counted, measure, percent, whole};
use crate::run::Run;
use batches::Part;
use runs::training::EvaluationRecord;
use scoring::Metrics;
use scoring::{Calibration, calibration, roc};

/// Metrics with their intervals, confusion matrix, ROC curve and calibration.
pub fn held_out(runs: &[Run], html: &mut Html) {
    section("held-out", html, |html| {
        if runs.iter().all(|run| run.rates().is_none()) {
            let has_many = runs.iter().any(|run| run.of_many_labels().is_some());
            html.paragraph(
                "quiet",
                match has_many {
                    true => "There are no intervals and curves for texts with several labels.",
                    false => "No rows were held out, or they are not evaluated yet.",
                },
            );
            return;
        }
        intervals(runs, html);
        for run in runs.iter().filter(|run| run.evaluation.as_ref().is_some_and(EvaluationRecord::is_fitted))
        {
            let name = if runs.len() > 1 { format!("{}: ", run.name) } else { String::new() };
            let fitted = "Threshold or calibration was fitted on these rows, so the metrics are better than on other rows.";
            html.paragraph("quiet", &format!("{name}{fitted}"));
        }
        html.class("div", "charts", |html| {
            for (at, run) in runs.iter().enumerate() {
                if let Some((part, metrics)) = run.tested() {
                    confusion(at, run, part, &metrics, html);
                }
            }
        });
        for (at, run) in runs.iter().enumerate().filter(|(_, run)| run.has_classes()) {
            if runs.len() > 1 {
                html.element("h3", &[], |html| run_name(at, run, html));
            }
            classes(run, html);
            let why = "ROC curve, calibration plot and certainty are of two classes; this training has three or more.";
            html.paragraph("quiet", why);
        }
        html.class("div", "charts", |html| {
            roc_chart(runs, html);
            calibration_chart(runs, html);
        });
    });
}

fn confusion(at: usize, run: &Run, part: Part, metrics: &Metrics, html: &mut Html) {
    let found = metrics.confusion;
    html.class("figure", &format!("chart confusion {}", color(at)), |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("strong", &[], "Confusion");
            html.leaf(
                "span",
                &[],
                &format!("{}, {} of the {} part", run.name, counted(metrics.rows, "row"), part_name(part)),
            );
        });
        html.element("table", &[], |html| {
            let names = run.class_names(found.n_classes());
            let heads: Vec<String> = names.iter().map(|name| format!("predicted {name}")).collect();
            let heads: Vec<&str> = [""].into_iter().chain(heads.iter().map(String::as_str)).collect();
            columns(&heads, html);
            html.element("tbody", &[], |html| {
                for (is, (name, counts)) in names.iter().zip(found.labels()).enumerate() {
                    let all = counts.iter().fold(0u64, |sum, n| sum.saturating_add(*n)).max(1);
                    let name = &format!("label {name}");
                    row_of(name, html, |html| {
                        for (called, &count) in counts.iter().enumerate() {
                            let share = count as f64 / all as f64;
                            let class = if is == called { "right" } else { "astray" };
                            html.element(
                                "td",
                                &[("class", class), ("style", &format!("--share:{share:.3}"))],
                                |html| {
                                    html.leaf("b", &[], &whole(count));
                                    html.leaf("span", &[], &percent(share));
                                },
                            );
                        }
                    });
                }
            });
        });
    });
}

/// Metrics of each of three or more classes.
fn classes(run: &Run, html: &mut Html) {
    let Some((_, metrics)) = run.tested() else { return };
    let names = run.class_names(metrics.confusion.n_classes());
    table(&format!("Classes of {}", run.name), html, |html| {
        columns(&["class", "rows", "precision", "recall", "F1"], html);
        html.element("tbody", &[], |html| {
            for (name, of) in names.iter().zip(metrics.confusion.classes()) {
                row_of(name, html, |html| {
                    cell(&whole(of.rows), html);
                    [of.precision, of.recall, of.f1].iter().for_each(|&value| cell(&measure(value), html));
                });
            }
            html.class("tr", "sum", |html| {
                html.leaf("th", &[("scope", "row")], "mean of the classes");
                cell(&whole(metrics.rows), html);
                let means = [metrics.precision, metrics.recall, metrics.f1];
                means.iter().for_each(|&value| cell(&measure(value), html));
            });
        });
    });
}

fn roc_chart(runs: &[Run], html: &mut Html) {
    let mut lines = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let Some(points) = run.scores.as_deref().and_then(roc) else { continue };
        let auc = run
            .tested()
            .and_then(|(_, metrics)| metrics.auc)
            .map_or(String::new(), |auc| format!("AUC {}", measure(auc)));
        lines.push(Series { run: at, of: line_of(runs, run), what: auc, style: Style::Line, points });
    }
    let chart = Chart {
        title: "ROC",
        note: "true positive rate over false positive rate",
        x_label: "false positive rate",
        diagonal: Some("chance"),
        ..of_shares(lines)
    };
    chart.draw(html);
}

/// A chart whose axes are both fractions; the caller sets the title.
fn of_shares(lines: Vec<Series>) -> Chart<'static> {
    let all = Some((0.0, 1.0));
    Chart {
        title: "",
        note: "",
        x_label: "",
        y_range: all,
        from_zero: false,
        y_limits: SHARE,
        x_range: all,
        diagonal: None,
        y_text: percent_whole,
        x_text: percent_whole,
        lines,
    }
}

fn percent_whole(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn calibration_chart(runs: &[Run], html: &mut Html) {
    let mut lines = Vec::new();
    let mut found: Vec<(usize, &Run, Calibration)> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let (Some(record), Some(scores)) = (&run.evaluation, &run.scores) else { continue };
        let Some(calibration) = calibration(record.decision(), scores) else {
            html.class("figure", "chart", |html| {
                html.element("figcaption", &[], |html| html.leaf("strong", &[], "Calibration"));
                let why = format!("{} predicts the rating, not a probability.", run.name);
                html.paragraph("quiet", &why);
            });
            continue;
        };
        let points =
            calibration.bins.iter().filter(|bin| bin.rows > 0).map(|bin| (bin.probability, bin.positive));
        let before = record.probabilities.and_then(|found| found.uncalibrated);
        let before = before.map_or_else(String::new, |before| {
            format!(" ({} before the calibration)", percent(before.calibration_error))
        });
        let what = format!("mean calibration error {}{before}", percent(calibration.error));
        lines.push(Series {
            run: at,
            of: line_of(runs, run),
            what,
            style: Style::Dots,
            points: points.collect(),
        });
        found.push((at, run, calibration));
    }
    let chart = Chart {
        title: "Calibration",
        note: "share of positive rows over predicted probability",
        x_label: "probability",
        diagonal: Some("perfect"),
        ..of_shares(lines)
    };
    chart.draw(html);
    if !found.is_empty() {
        certainty(&found, html);
    }
}

/// Histogram of predicted probabilities.
fn certainty(found: &[(usize, &Run, Calibration)], html: &mut Html) {
    html.class("figure", "chart", |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("strong", &[], "Certainty");
            html.leaf("span", &[], "rows by predicted probability");
        });
        for (at, run, calibration) in found {
            let most = calibration.bins.iter().map(|bin| bin.rows).max().unwrap_or(0).max(1);
            let ends =
                [&calibration.bins[0], &calibration.bins[calibration.bins.len() - 1]].map(|bin| bin.rows);
            let all: u64 = calibration.bins.iter().map(|bin| bin.rows).sum();
            let sure = percent((ends[0] + ends[1]) as f64 / all.max(1) as f64);
            let label =
                format!("{}: {sure} of the rows have a probability below 10 % or above 90 %", run.name);
            html.element(
                "div",
                &[("class", &format!("bars {}", color(*at))), ("role", "img"), ("aria-label", &label)],
                |html| {
                    for (place, bin) in calibration.bins.iter().enumerate() {
                        let style = format!("height:{:.1}%", 100.0 * bin.rows as f64 / most as f64);
                        let title =
                            format!("{} to {} %: {}", 10 * place, 10 * place + 10, counted(bin.rows, "row"));
                        html.element("span", &[("title", &title)], |html| {
                            html.element("i", &[("style", &style)], |_| ());
                        });
                    }
                },
            );
        }
        html.markup("<div class=\"bars-axis\"><span>0 %</span><span>50 %</span><span>100 %</span></div>");
    });
}
