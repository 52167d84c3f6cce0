//! Reads records and tokenizes their texts, on a separate thread, in parallel to the thread that collects the
//! rows.
//!
//! Reading, grouping and tokenizing takes a third of the time until the end of a reducer's input. Looking up
//! words takes most of the rest, so two threads are sufficient.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use corpus::digest::text_hash;
use corpus::group::{Group, Groups, Order};
use corpus::record::Votes;
use corpus::words::{Span, find_words, room};
use dataset::collect::Text;
use program::exit::{Exit, Failed};
use program::hadoop::partition;
use program::system::Failure;

use crate::Result;
use crate::task::{Others, Task};

/// Number of batches: one is being filled, one is being collected, and one is waiting.
const BATCHES: usize = 3;
/// Size of texts in bytes at which a batch is passed on.
const BATCH_BYTES: usize = 128 << 10;
/// The thread's stack holds nothing large.
const STACK_BYTES: usize = 256 << 10;

/// Neighbouring texts.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// The words of all texts, followed by unused capacity.
    words: Vec<Span>,
    texts: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    bytes_end: usize,
    words_end: usize,
    hash: u64,
    votes: Votes,
}

impl Batch {
    /// Allocates the maximum of a batch, except for one long text. It is allocated on this thread, because
    /// another thread would create its own malloc arena for it.
    fn with_room() -> Self {
        Self {
            bytes: Vec::with_capacity(2 * BATCH_BYTES),
            words: vec![Span::default(); room(2 * BATCH_BYTES)],
            texts: Vec::with_capacity(BATCH_BYTES / 64),
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.texts.clear();
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    fn push(&mut self, text: &[u8], votes: Votes) {
        let words_from = self.texts.last().map_or(0, |last| last.words_end);
        let needed = words_from + room(text.len());
        if self.words.len() < needed {
            self.words.resize(needed, Span::default());
        }
        let words_end = words_from + find_words(text, &mut self.words[words_from..]);
        self.bytes.extend_from_slice(text);
        self.texts.push(Entry { bytes_end: self.bytes.len(), words_end, hash: text_hash(text), votes });
    }

    /// The texts in order.
    pub fn texts(&self) -> impl Iterator<Item = Text<'_>> {
        let (mut bytes_from, mut words_from) = (0, 0);
        self.texts.iter().map(move |entry| {
            let bytes = &self.bytes[std::mem::replace(&mut bytes_from, entry.bytes_end)..entry.bytes_end];
            let words = &self.words[std::mem::replace(&mut words_from, entry.words_end)..entry.words_end];
            Text { bytes, words, hash: entry.hash, votes: entry.votes }
        })
    }
}

/// Reads the texts of a task ahead of their consumer.
pub struct Reading {
    /// Batches in order; an empty one is the end.
    filled: Receiver<Result<Batch>>,
    spare: SyncSender<Batch>,
}

impl Reading {
    /// Starts to read records. The thread ends with its input or with the program.
    pub fn start(input: impl Read + Send + 'static, task: &Task) -> Result<Self> {
        let (there, filled) = sync_channel(BATCHES);
        let (spare, back) = sync_channel(BATCHES);
        for _ in 0..BATCHES {
            spare.send(Batch::with_room()).expect("both ends are here");
        }
        let mut reader = Reader {
            groups: Groups::new(input, Order::Ascending),
            others: task.others,
            partition: task.partition,
            partitions: task.partitions,
        };
        let read = move || {
            for mut batch in back {
                let filled = reader.fill(&mut batch).map(|()| batch);
                let is_last = filled.as_ref().map_or(true, Batch::is_empty);
                if there.send(filled).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().stack_size(STACK_BYTES).spawn(read).map_err(|error| no_thread(&error))?;
        Ok(Self { filled, spare })
    }

    /// Passes all texts to `each`, in order.
    pub fn each(self, mut each: impl FnMut(Text<'_>) -> Result<()>) -> Result<()> {
        loop {
            let batch = self.filled.recv().expect("the thread sends an end, unless it panics")?;
            if batch.is_empty() {
                return Ok(());
            }
            batch.texts().try_for_each(&mut each)?;
            // The receiver no longer exists if the input has ended.
            let _ = self.spare.send(batch);
        }
    }
}

/// The error of a thread that cannot be started.
pub fn no_thread(error: &io::Error) -> Failed {
    Failed::new(Exit::Io, Failure::reading("start a thread", error).to_string())
}

struct Reader<R> {
    groups: Groups<R>,
    others: Others,
    partition: u32,
    partitions: u32,
}

impl<R: Read> Reader<R> {
    /// Fills a batch with texts of this partition. Leaves it empty if there are no more.
    fn fill(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        while batch.bytes.len() < BATCH_BYTES {
            let Some(Group { text, votes, line }) = self.groups.next_group()? else { break };
            if std::str::from_utf8(text).is_err() {
                let remedy = "feed this program the output of mapper or combiner";
                let why = format!("line {line}: the text is not UTF-8; {remedy}");
                return Err(Failed::new(Exit::BadInput, why));
            }
            let found = partition(text, self.partitions);
            if found != self.partition {
                match self.others {
                    Others::Refuse => {
                        let why = format!(
                            "line {line}: the text belongs to partition {found} of {}, expected {}; use --select to read one \
                             partition from all records, or --any-partitioner if another partitioner split them",
                            self.partitions, self.partition
                        );
                        return Err(Failed::new(Exit::BadInput, why));
                    }
                    Others::LeaveOut => continue,
                    Others::Take => {}
                }
            }
            batch.push(text, votes);
        }
        Ok(())
    }
}
