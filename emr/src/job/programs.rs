//! The flags that each program gets from a job.

use super::Job;

/// The name under which a file of stop words is sent to the tasks.
pub const STOP_WORDS: &str = "stopwords.txt";

/// A flag of rows that `mapper` has too.
const PUNCTUATION: &str = "--punctuation";

impl Job {
    /// Flags of `mapper`.
    pub fn mapper_flags(&self) -> Vec<String> {
        let input = &self.input;
        let limits = [
            ("--line-bytes-max", &input.line_bytes_max),
            ("--bad-lines-max", &input.bad_lines_max),
            ("--invalid-utf8-max", &input.invalid_utf8_max),
        ];
        let punctuation = self.rows.flags.iter().filter(|flag| *flag == PUNCTUATION);
        input.format_flags.iter().chain(punctuation).cloned().chain(set(limits)).collect()
    }

    /// Flags of `reducer` for what it writes, with `--stopwords` unless the stop words are in a file.
    pub fn shard_flags(&self) -> Vec<String> {
        let flags = [("--texts", self.output.texts), ("--keep-words", self.hadoop.keep_words)];
        let flags = flags.into_iter().filter(|&(_, is_set)| is_set).map(|(flag, _)| flag.to_owned());
        self.rows.flags.iter().cloned().chain(flags).collect()
    }

    /// Flags of `reducer` for what it writes and for memory, without `--run` and `--s3`. A file of stop words is `STOP_WORDS` in the
    /// working folder.
    pub fn reducer_flags(&self) -> Vec<String> {
        let stop_words = self.rows.stop_words.as_ref().map(|_| STOP_WORDS.to_owned());
        let others = [("--stopwords", &stop_words), ("--memory", &self.hadoop.reducer_memory)];
        self.shard_flags().into_iter().chain(set(others)).collect()
    }

    /// Flags of `merge` for the content of the dataset, without `--run`, `--counts`, `--out` and `--s3`.
    pub fn merge_flags(&self) -> Vec<String> {
        let place = |place: &Option<super::Place>| place.as_ref().map(ToString::to_string);
        let (vocabulary, without) = (place(&self.output.vocabulary), place(&self.output.without));
        let others = [
            ("--vocabulary", &vocabulary),
            ("--without", &without),
            ("--bad-lines-max", &self.input.bad_lines_max),
            ("--invalid-utf8-max", &self.input.invalid_utf8_max),
        ];
        self.output.flags.iter().cloned().chain(set(others)).collect()
    }
}

/// The flags that have values.
fn set<const N: usize>(flags: [(&str, &Option<String>); N]) -> Vec<String> {
    let set = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value.clone()?]));
    set.flatten().collect()
}
