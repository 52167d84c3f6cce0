//! Progress of a training of word vectors: a line at intervals on standard error, and the metrics in its folder.

use std::time::{Duration, Instant};

use embeddings::pip::Pip;
use embeddings::similarity::Similarity;
use report::whole;
use runs::training::{Line, PipLine, SimilarityLine, TokensLine};

use training::Result;
use training::log::Log;
use training::tell::tell;
use training::texts_out::TextsOut;

/// Time between two looks at the training.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time between two lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// Shows and logs a training.
pub(super) struct Progress {
    log: Log,
    begin: Instant,
    since: Instant,
    /// Number of tokens when this process began, and at the last line.
    n_begun: u64,
    n_tokens: u64,
    last: Speed,
}

/// What is known of a stream at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub n_words: u64,
    pub n_lines: u64,
    pub n_skipped: u64,
}

/// The speed of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    /// Time since it began to train.
    pub seconds: f64,
    pub tokens_per_s: f64,
}

impl Progress {
    /// Begins the log of a process, at this number of tokens.
    pub(super) fn new(out: &TextsOut, n_tokens: u64) -> Result<Self> {
        let now = Instant::now();
        Ok(Self {
            log: out.log(n_tokens)?,
            begin: now,
            since: now,
            n_begun: n_tokens,
            n_tokens,
            last: Speed::default(),
        })
    }

    /// Time after which progress is noted again.
    pub(super) fn interval(&self) -> Duration {
        LOOK_EVERY
    }

    /// Whether the next line is due.
    pub(super) fn is_due(&self) -> bool {
        self.since.elapsed() >= INTERVAL
    }

    /// Notes the number of tokens so far, and the loss since the last line. A line is printed at intervals.
    pub(super) fn note(
        &mut self,
        n_tokens: u64,
        take_loss: impl FnOnce() -> Option<f64>,
        counts: Option<Counts>,
    ) {
        if !self.is_due() {
            return;
        }
        let seconds = self.since.elapsed().as_secs_f64();
        let tokens_per_s = n_tokens.saturating_sub(self.n_tokens) as f64 / seconds;
        let of_stream = counts.map_or_else(String::new, |counts| {
            let skipped = match counts.n_skipped {
                0 => String::new(),
                n => format!(", {} lines skipped", whole(n)),
            };
            format!(", {} words in the vocabulary{skipped}", whole(counts.n_words))
        });
        tell(&format!("{} tokens, {} tokens/s{of_stream}", whole(n_tokens), whole(tokens_per_s as u64)));
        self.write(n_tokens, take_loss(), tokens_per_s, counts.unwrap_or_default());
        (self.since, self.n_tokens) = (Instant::now(), n_tokens);
    }

    /// Ends an epoch.
    pub(super) fn end_epoch(&mut self, epoch: u32, epochs: u32, n_tokens: u64, loss: Option<f64>) {
        let loss_text = loss.map_or_else(String::new, |loss| format!(": loss {loss:.4}"));
        tell(&format!("epoch {epoch} of {epochs}{loss_text}"));
        self.write(n_tokens, loss, self.tokens_per_s(n_tokens), Counts::default());
    }

    /// Tokens per second since this process began.
    pub(super) fn tokens_per_s(&self, n_tokens: u64) -> f64 {
        n_tokens.saturating_sub(self.n_begun) as f64 / self.begin.elapsed().as_secs_f64()
    }

    /// Prints and logs a similarity.
    pub(super) fn write_similarity(&mut self, step: u64, similarity: &Similarity) {
        let Similarity { file, spearman, pairs, found } = similarity;
        let value = spearman.map_or_else(|| "none".to_owned(), |value| format!("{value:.4}"));
        tell(&format!("similarity {value} of {found} of {pairs} pairs: {file}"));
        self.log.write(&Line::Similarity(SimilarityLine {
            step,
            file: file.clone(),
            spearman: *spearman,
            pairs: *pairs as u64,
            found: *found as u64,
        }));
    }

    /// Prints and logs the distance to other vectors.
    pub(super) fn write_pip(&mut self, step: u64, reference: &str, pip: Option<&Pip>) {
        let Some(Pip { words, unit, .. }) = pip else {
            return tell(&format!("no PIP loss: no word of {reference} has a vector"));
        };
        let (words, loss, random) = (*words as u64, unit.loss, unit.random);
        let of_words = whole(words);
        tell(&format!("PIP loss {loss:.1} of {of_words} words, {random:.1} of random vectors: {reference}"));
        self.log.write(&Line::Pip(PipLine { step, reference: reference.to_owned(), words, loss, random }));
    }

    /// Prints and logs the loss of held-out sentences.
    pub(super) fn write_held_out(&mut self, step: u64, loss: f64) {
        tell(&format!("held-out loss {loss:.4}"));
        self.log.write(&Line::HeldOut { step, loss });
    }

    /// The duration and the tokens per second of the last line, which a report shows.
    pub(super) fn last(&self) -> Speed {
        self.last
    }

    /// Logs a line.
    pub(super) fn write(&mut self, step: u64, loss: Option<f64>, tokens_per_s: f64, counts: Counts) {
        self.last = Speed { seconds: self.begin.elapsed().as_secs_f64(), tokens_per_s };
        self.log.write(&Line::Tokens(TokensLine {
            step,
            loss,
            tokens_per_s,
            words: counts.n_words,
            lines: counts.n_lines,
            skipped_lines: counts.n_skipped,
            elapsed_s: self.last.seconds,
        }));
    }

    /// Returns the first error of a write.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.log.check()
    }
}
