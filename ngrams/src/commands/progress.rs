//! Progress of an n-gram training: a bar on a terminal, a line per epoch elsewhere, nothing with --quiet, and the metrics in
//! its folder.

use std::time::Instant;

use batches::Part;
use classifiers::{fasttext, linear};
use indicatif::ProgressBar;
use report::whole;
use runs::training::{EpochLine, Line};
use scoring::Measured;

use training::Result;
use training::log::Log;
use training::tell::{bar, tell_above};

/// Shows and logs a training.
pub struct Progress {
    bar: ProgressBar,
    log: Log,
    epochs: u32,
    texts: u64,
    /// The start of the epoch, or of the part of it that this process computes.
    begin: Instant,
    /// Epochs and texts that are done.
    done: (u32, u64),
    /// Texts of the epoch, and the sum of their losses.
    sum: (u64, f64),
    loss: Option<f64>,
    /// Number of n-grams with a weight, of a linear model.
    n_weighted: Option<u64>,
    is_resumed: bool,
}

impl Progress {
    /// Shows a training of this number of epochs and texts per epoch.
    pub fn new(log: Log, epochs: u32, texts: u64) -> Result<Self> {
        let length = u64::from(epochs) * texts;
        let bar = bar(Some(length), "{msg} {wide_bar} {percent} %, {eta} left")?;
        let begin = Instant::now();
        Ok(Self {
            bar,
            log,
            epochs,
            texts,
            begin,
            done: (0, 0),
            sum: (0, 0.0),
            loss: None,
            n_weighted: None,
            is_resumed: false,
        })
    }

    /// The training continues from a checkpoint: the first state is not that of an epoch's start.
    pub fn resume(&mut self) {
        self.is_resumed = true;
    }

    /// Notes a segment. At the end of an epoch, `evaluate` computes the metrics of splits.
    pub fn note(
        &mut self,
        of: &fasttext::FastTextProgress,
        evaluate: impl FnOnce() -> Result<Vec<(Part, Measured)>>,
    ) -> Result<()> {
        let n = of.n_done.saturating_sub(self.done.1);
        if std::mem::take(&mut self.is_resumed) {
            // The texts before the checkpoint are not of this process.
            self.done = (of.epoch, of.n_done);
            self.sum = (1, of.loss);
        } else {
            self.sum.0 += n;
            self.sum.1 += of.loss * n as f64;
            self.done.1 = of.n_done;
        }
        self.bar.set_position(of.n_done);
        self.bar.set_message(format!("epoch {}, loss {:.4}", of.epoch + 1, of.loss));
        if of.epoch > self.done.0 {
            let loss = self.sum.1 / self.sum.0.max(1) as f64;
            let seconds = self.begin.elapsed().as_secs_f64();
            self.log_epoch(of.epoch, loss, seconds, &evaluate()?);
            self.end(of.epoch, Some(loss));
        }
        Ok(())
    }

    /// Notes a step of a linear training.
    pub fn note_linear(&mut self, done: linear::LinearProgress) {
        if let linear::LinearProgress::Numbered { n_rows } = done {
            self.n_weighted = Some(n_rows as u64);
        }
        match done {
            linear::LinearProgress::Numbered { n_rows: 0 } => {
                self.tell(
                    "warning: no n-gram has a weight, so all texts have the same answer; lower --min-count",
                );
            }
            linear::LinearProgress::Numbered { n_rows } => {
                self.tell(&format!("{} n-grams with a weight", whole(n_rows as u64)));
            }
            linear::LinearProgress::Trained { .. } => {}
        }
    }

    /// Ends a linear training, which has no loss. Several classifiers may have been trained at the same time, so the log has
    /// one line for all epochs.
    pub fn end_linear(&mut self, epochs: u32) {
        let seconds = self.begin.elapsed().as_secs_f64();
        self.tell(&format!("trained on {} texts in {seconds:.2} s", whole(self.texts)));
        self.write(epochs, 0, None, seconds, &[]);
        self.end(epochs, None);
    }

    fn log_epoch(&mut self, epoch: u32, loss: f64, seconds: f64, evaluated: &[(Part, Measured)]) {
        let accuracy = |(part, measured): &(Part, Measured)| {
            format!(", {} accuracy {:.4}", name_of(*part), measured.accuracy())
        };
        let accuracies: String = evaluated.iter().map(accuracy).collect();
        self.tell(&format!("epoch {epoch} of {}: loss {loss:.4}, {seconds:.2} s{accuracies}", self.epochs));
        self.write(epoch, epoch - 1, Some(loss), seconds, evaluated);
    }

    /// Writes a line of the log for the epochs after `from`.
    fn write(
        &mut self,
        epoch: u32,
        from: u32,
        loss: Option<f64>,
        seconds: f64,
        evaluated: &[(Part, Measured)],
    ) {
        let metrics =
            |part: Part| evaluated.iter().find(|(of, _)| *of == part).map(|(_, measured)| *measured);
        self.log.write(&Line::Epoch(EpochLine {
            epoch,
            step: u64::from(epoch),
            loss,
            seconds: Some(seconds),
            from_step: Some(u64::from(from)),
            validation: metrics(Part::Validation),
            test: metrics(Part::Test),
            ranks: Vec::new(),
        }));
    }

    fn end(&mut self, epoch: u32, loss: Option<f64>) {
        self.loss = loss;
        self.done.0 = epoch;
        self.sum = (0, 0.0);
        self.begin = Instant::now();
    }

    /// Ends the bar. Returns the loss of the last epoch, the number of n-grams with a weight of a linear model, and the log.
    pub fn finish(self) -> (Option<f64>, Option<u64>, Log) {
        self.bar.finish_and_clear();
        (self.loss, self.n_weighted, self.log)
    }

    fn tell(&self, text: &str) {
        tell_above(&self.bar, text);
    }
}

/// The name of a split in messages.
pub fn name_of(part: Part) -> &'static str {
    match part {
        Part::Training => "training",
        Part::Validation => "validation",
        Part::Test => "test",
    }
}
