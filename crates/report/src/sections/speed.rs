//! Throughput of the ranks, and how they spent their time.

use runs::training::{RankTimes, ShareTimes};

use super::{cell, columns, epochs_at, line_of, over_epoch_axis, over_steps, row_of, section, series, table};
use crate::chart::{Chart, FROM_ZERO, SHARE, Series, Style, color};
use crate::html::Html;
use crate::name::run_name;
use crate::numbers::{percent, short, whole};
use crate::run::Run;

/// Reviews per second, and waiting times.
pub fn speed(runs: &[Run], html: &mut Html) {
    section("speed", html, |html| {
        html.class("div", "charts", |html| {
            let speeds = series(runs, |run| {
                vec![("all ranks", Style::Line, over_steps(run, |line| line.reviews_per_s))]
            });
            Chart { from_zero: true, ..over_epoch_axis("Throughput", "reviews per second", short, speeds) }
                .draw(html);
            let waits =
                series(runs, |run| vec![("rank 0", Style::Line, over_steps(run, |line| line.waited_share))]);
            let chart =
                over_epoch_axis("Waiting for batches", "share of a step's time, of rank 0", percent, waits);
            Chart { from_zero: true, y_limits: SHARE, ..chart }.draw(html);
            let drifts = series(runs, |run| vec![("rank 0", Style::Line, drift(run))]);
            let note = "distance of a rank's change in a round from the mean change, relative to its length";
            Chart { from_zero: true, ..over_epoch_axis("Drift", note, short, drifts) }.draw(html);
            decided_shares(runs, html);
            let note = "mean tokens of a batch; with PyTorch, with padding";
            over_shares("Shares", note, runs, |share| share.work, html);
            let note = "milliseconds of a share, with the optimizer";
            over_shares("Computing", note, runs, |share| Some(1e3 * share.computed_s), html);
            let note = "milliseconds of a batch besides computing, with logging and checkpoints";
            over_shares("Waiting and reduction", note, runs, |share| Some(1e3 * share.rest_s), html);
        });
        for (at, run) in runs.iter().enumerate() {
            by_rank(at, run, runs.len() > 1, html);
        }
    });
}

/// How far ranks drifted apart, of a run in rounds.
fn drift(run: &Run) -> Vec<(f64, f64)> {
    run.steps.iter().filter_map(|line| Some((epochs_at(run, line.step)?, line.drift?))).collect()
}

/// A line per rank of the runs whose shares changed. Until the first decision, shares are equal.
fn decided_shares(runs: &[Run], html: &mut Html) {
    let mut lines = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let n_ranks = run.decisions.first().map_or(0, |first| first.fractions.len());
        for rank in 0..n_ranks {
            let mut share = 1.0 / n_ranks as f64;
            let mut points = vec![(0.0, share)];
            for decision in &run.decisions {
                let x = epochs_at(run, run.step_of_batch(decision.from_batch));
                if let (Some(x), Some(&decided)) = (x, decision.fractions.get(rank)) {
                    points.extend([(x, share), (x, decided)]);
                    share = decided;
                }
            }
            points.extend(epochs_at(run, run.last_step).map(|end| (end, share)));
            lines.push(of_rank(runs, at, rank, points));
        }
    }
    let chart = over_epoch_axis("Decided shares", "of the tokens of a batch", percent, lines);
    Chart { from_zero: true, y_limits: SHARE, ..chart }.draw(html);
}

fn of_rank(runs: &[Run], at: usize, rank: usize, points: Vec<(f64, f64)>) -> Series {
    let style = if rank == 0 { Style::Line } else { Style::Faint };
    Series { run: at, of: line_of(runs, &runs[at]), what: format!("rank {rank}"), style, points }
}

/// A line per rank of the runs with several ranks.
fn over_shares(
    title: &str,
    note: &str,
    runs: &[Run],
    value: fn(&ShareTimes) -> Option<f64>,
    html: &mut Html,
) {
    let mut lines = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let n_ranks = run.steps.iter().map(|line| line.shares.len()).max().unwrap_or(0);
        for rank in 0..n_ranks {
            let points = run
                .steps
                .iter()
                .filter_map(|line| Some((epochs_at(run, line.step)?, value(line.shares.get(rank)?)?)));
            lines.push(of_rank(runs, at, rank, points.collect()));
        }
    }
    Chart { from_zero: true, y_limits: FROM_ZERO, ..over_epoch_axis(title, note, short, lines) }.draw(html);
}

fn by_rank(at: usize, run: &Run, with_name: bool, html: &mut Html) {
    if with_name {
        html.element("h3", &[], |html| run_name(at, run, html));
    }
    let ranks = run.ranks();
    if ranks.is_empty() {
        html.paragraph("quiet", "Figures per rank are available after the first epoch.");
        return;
    }
    table(&format!("Ranks of {}", run.name), html, |html| {
        columns(&["rank", "reviews", "reviews/s", "waits for batches", "waits for ranks", "time"], html);
        html.element("tbody", &[], |html| {
            for times in &ranks {
                let seconds = times.seconds.max(1e-9);
                let share = |waited_s: f64| (waited_s / seconds).clamp(0.0, 1.0);
                let for_batches = share(times.waited_for_batches_s);
                let for_ranks = times.waited_for_ranks_s.map(share);
                row_of(&times.rank.to_string(), html, |html| {
                    cell(&whole(times.rows), html);
                    cell(&short(times.rows as f64 / seconds), html);
                    cell(&percent(for_batches), html);
                    cell(&for_ranks.map_or_else(|| "not known".to_owned(), percent), html);
                    html.element("td", &[("class", "stack")], |html| {
                        let widths = [
                            1.0 - for_batches - for_ranks.unwrap_or(0.0),
                            for_batches,
                            for_ranks.unwrap_or(0.0),
                        ];
                        html.class("div", &format!("bar {}", color(at)), |html| {
                            for (class, width) in
                                ["computes", "for-batches", "for-ranks"].into_iter().zip(widths)
                            {
                                let style = format!("width:{:.1}%", 100.0 * width.max(0.0));
                                html.element("i", &[("class", class), ("style", &style)], |_| ());
                            }
                        });
                    });
                });
            }
        });
    });
    html.class("ul", &format!("legend {}", color(at)), |html| {
        html.markup("<li><i class=\"computes\"></i>computes</li><li><i class=\"for-batches\"></i>waits for batches</li>");
        html.markup("<li><i class=\"for-ranks\"></i>waits for other ranks, and reduction</li>");
    });
    phases(run, &ranks, html);
}

/// The phases of a step, by rank.
fn phases(run: &Run, ranks: &[RankTimes], html: &mut Html) {
    let profiled: Vec<_> = ranks.iter().filter_map(|times| Some((times, times.profile?))).collect();
    let Some((_, first)) = profiled.first() else { return };
    let heads = first.phases().map(|(name, _)| name);
    table(&format!("Phases of {}", run.name), html, |html| {
        columns(&[&["rank"], &heads[..], &["rest", "sent"]].concat(), html);
        html.element("tbody", &[], |html| {
            for (times, profile) in &profiled {
                let seconds = times.seconds.max(1e-9);
                row_of(&times.rank.to_string(), html, |html| {
                    let shares = profile.phases().map(|(_, phase_s)| phase_s / seconds);
                    shares.iter().for_each(|&share| cell(&percent(share.clamp(0.0, 1.0)), html));
                    cell(&percent((1.0 - shares.iter().sum::<f64>()).clamp(0.0, 1.0)), html);
                    cell(&format!("{} MB", short(profile.sent_bytes as f64 / 1e6)), html);
                });
            }
        });
    });
}
