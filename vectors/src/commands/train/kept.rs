//! The sentences of files, which are trained on in each epoch: in memory, and from a limit on in an unnamed temporary file.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use embeddings::skipgram::Sentences;

use training::{Error, Result};

/// Parts of the sentences, in the order of the input.
#[derive(Debug)]
pub(super) struct Kept {
    parts: Vec<Part>,
    memory_max: usize,
    memory: usize,
    file: Option<Mutex<File>>,
}

#[derive(Debug)]
enum Part {
    Here(Arc<Sentences>),
    /// In the file, from this byte on.
    There(u64),
}

impl Kept {
    pub(super) fn new(memory_max: usize) -> Self {
        Self { parts: Vec::new(), memory_max, memory: 0, file: None }
    }

    /// Appends a part.
    pub(super) fn push(&mut self, sentences: Sentences) -> Result<()> {
        let bytes = sentences.memory_bytes();
        if self.memory + bytes <= self.memory_max {
            self.memory += bytes;
            self.parts.push(Part::Here(Arc::new(sentences)));
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(Mutex::new(tempfile::tempfile().map_err(failed)?));
        }
        if let Some(file) = &mut self.file {
            let file = file.get_mut().unwrap_or_else(PoisonError::into_inner);
            let begin = file.seek(SeekFrom::End(0)).map_err(failed)?;
            file.write_all(&sentences.to_bytes()).map_err(failed)?;
            self.parts.push(Part::There(begin));
        }
        Ok(())
    }

    /// Replaces the words of all parts.
    pub(super) fn renumber(self, number: impl Fn(u32) -> Option<u32>) -> Result<Self> {
        let mut renumbered = Self::new(self.memory_max);
        for at in 0..self.parts.len() {
            let mut sentences = Arc::unwrap_or_clone(self.get(at)?);
            sentences.renumber(&number);
            renumbered.push(sentences)?;
        }
        Ok(renumbered)
    }

    /// Number of parts.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// A part.
    pub(super) fn get(&self, at: usize) -> Result<Arc<Sentences>> {
        match (&self.parts[at], &self.file) {
            (Part::Here(sentences), _) => Ok(Arc::clone(sentences)),
            (Part::There(begin), Some(file)) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(*begin)).map_err(failed)?;
                let read = Sentences::read(&mut BufReader::new(&mut *file)).map_err(failed)?;
                Ok(Arc::new(read))
            }
            (Part::There(_), None) => Err(Error::internal(&"sentences in a file that was not created")),
        }
    }
}

fn failed(source: std::io::Error) -> Error {
    Error::io(&PathBuf::from("a temporary file in TMPDIR"), source)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn parts_beyond_the_memory_come_back_from_the_file() {
        for memory_max in [0, 60, 1 << 20] {
            let mut kept = Kept::new(memory_max);
            for part in 0..5 {
                let mut sentences = Sentences::default();
                sentences.push([part, part + 1], 3);
                sentences.push([], 1);
                kept.push(sentences).unwrap();
            }
            let kept = kept.renumber(|word| (word != 3).then_some(2 * word)).unwrap();
            assert_eq!(kept.len(), 5);
            let found: Vec<Vec<u32>> = (0..5)
                .map(|at| {
                    let sentences = kept.get(at).unwrap();
                    assert_eq!(sentences.n_tokens(), 4);
                    sentences.iter().flatten().copied().collect()
                })
                .collect();
            assert_eq!(found, [vec![0, 2], vec![2, 4], vec![4], vec![8], vec![8, 10]], "{memory_max}");
        }
    }
}
