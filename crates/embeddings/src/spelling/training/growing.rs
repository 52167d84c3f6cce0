//! A training on a stream: words and their characters are known as they come.

use super::{Output, SpellingTraining};
use crate::skipgram::{Begun, Decay, Done, Vocabulary, Work};
use crate::spelling::characters::GrowingCharacters;
use crate::spelling::settings::SpellingSettings;

impl SpellingTraining {
    /// A training without words.
    pub fn of_stream(settings: SpellingSettings, n_threads: usize) -> Self {
        let characters = GrowingCharacters::default();
        Self::of(settings, characters, GrowingCharacters::N_IDS, Vec::new(), n_threads)
    }

    /// Begins the output vector of a new word, and spells a frequent one.
    pub fn begin(&mut self, Begun { vocabulary, number, is_new, is_frequent }: Begun<'_>) {
        if is_new {
            self.begin_row(number);
        }
        if is_frequent {
            let changed = self.characters.add(number, vocabulary.word(number));
            for number in changed.into_iter().chain([number]) {
                self.words[number as usize] = self.characters.numbered.ids(vocabulary.word(number));
            }
        }
    }

    fn begin_row(&mut self, number: u32) {
        self.words.resize(self.words.len().max(number as usize + 1), Vec::new());
        if let Output::Table(table) = &mut self.output {
            table.begin(number);
        }
    }

    /// Continues with the words of a vocabulary, whose characters are known.
    pub(crate) fn begin_all(&mut self, vocabulary: &Vocabulary) {
        for (number, (word, count)) in (0..).zip(vocabulary.iter()) {
            self.begin_row(number);
            if count >= self.settings.min_count {
                self.words[number as usize] = self.characters.numbered.ids(word);
            }
        }
    }

    /// Trains on some work, in batches.
    pub fn run(&mut self, decay: Decay, work: &Work) -> Done {
        let part = self.part(&work.sentences, &work.distribution, work.number);
        let mut sum = Done::default();
        for batch in 0..part.n_batches() {
            sum.add(&self.step(&part, batch, &work.distribution, decay));
        }
        // Without frequent words, there are no batches.
        let n_left = work.sentences.n_tokens() - sum.n_tokens;
        self.n_tokens += n_left;
        sum.n_tokens += n_left;
        sum
    }
}

#[cfg(test)]
mod tests {
    use crate::skipgram::{Counting, Decay, Vocabulary};
    use crate::spelling::{Outputs, SpellingSettings, SpellingTraining};

    const SETTINGS: SpellingSettings = SpellingSettings {
        dim: 6,
        char_dim: 5,
        hidden: 16,
        outputs: Outputs::Table,
        batch: 20,
        window: 3,
        negatives: 3,
        rate: 0.01,
        min_count: 2,
        sample: 0.0,
        power: 0.75,
        seed: 1,
    };
    const LINES: [&[u8]; 3] = [
        "été té été té\n".as_bytes(),
        "дом мода дом мода été\n".as_bytes(),
        b"one two one two ten net ten one two one\n",
    ];

    fn counting(vocabulary: Vocabulary) -> Counting {
        Counting::new(vocabulary, SETTINGS.min_count, SETTINGS.power, SETTINGS.sample)
    }

    fn learn(training: &mut SpellingTraining, counting: &mut Counting, lines: &[&[u8]]) {
        for lines in lines {
            let work = counting.work(lines, |begun| training.begin(begun));
            training.run(Decay::Constant, &work);
        }
    }

    #[test]
    fn a_stream_that_is_restored_ends_with_the_same_bits() {
        for outputs in [Outputs::Table, Outputs::Generator, Outputs::Shared] {
            let new = || SpellingTraining::of_stream(SpellingSettings { outputs, ..SETTINGS }, 2);
            // Small enough for words to replace others.
            let (mut whole, mut counted) = (new(), counting(Vocabulary::new(4)));
            learn(&mut whole, &mut counted, &LINES[..2]);
            let mut state = Vec::new();
            whole.save_stream(counted.vocabulary(), b"here", &mut state).unwrap();
            let mut restored = new();
            let (vocabulary, place) = restored.restore_stream(4, &mut &state[..]).unwrap();
            assert_eq!((&place[..], vocabulary.n_tokens()), (&b"here"[..], 9));
            // A restored stream computes its distribution anew.
            counted = counting(new().restore_stream(4, &mut &state[..]).unwrap().0);
            let mut counted_again = counting(vocabulary);
            learn(&mut whole, &mut counted, &LINES[2..]);
            learn(&mut restored, &mut counted_again, &LINES[2..]);
            let (vocabulary, again) = (counted.vocabulary(), counted_again.vocabulary());
            assert!(vocabulary.iter().eq(again.iter()) && vocabulary.n_evicted() > 0);
            let all: Vec<u32> = (0..4).filter(|&word| vocabulary.count_of(word) >= 2).collect();
            assert_eq!(whole.n_tokens(), 19);
            assert_eq!(restored.vectors(&all), whole.vectors(&all), "{outputs:?}");
            assert_eq!(restored.outputs(&all), whole.outputs(&all), "{outputs:?}");
            assert_eq!(restored.characters().all(), whole.characters().all());
            state[100] ^= 1;
            assert!(new().restore_stream(4, &mut &state[..]).is_err());
            state[100] ^= 1;
            assert!(new().restore_stream(3, &mut &state[..]).is_err());
        }
    }

    #[test]
    fn a_model_has_the_characters_that_have_come() {
        let mut training = SpellingTraining::of_stream(SETTINGS, 1);
        let mut counted = counting(Vocabulary::new(100));
        learn(&mut training, &mut counted, &LINES[..1]);
        assert_eq!(training.generator().characters().all(), ['t', 'é']);
        learn(&mut training, &mut counted, &LINES[1..]);
        let generator = training.generator();
        let found: String = generator.characters().all().iter().collect();
        assert_eq!(found, "téмодoen", "in the order of their second words");
        assert_eq!(generator.weights().sizes().ids, 3 + found.chars().count());
        let number = counted.vocabulary().find("мода".as_bytes()).unwrap();
        assert_eq!(generator.vector("мода".as_bytes()), training.vectors(&[number]));
    }

    #[test]
    fn a_word_that_takes_the_number_of_another_one_begins_anew() {
        let mut training = SpellingTraining::of_stream(SETTINGS, 1);
        let mut counted = counting(Vocabulary::new(2));
        learn(&mut training, &mut counted, &[b"ab ba ab ba ab ba\n"]);
        let before = training.outputs(&[0, 1]);
        assert!(before.iter().any(|value| *value != 0.0));
        let mut replaced = Vec::new();
        counted.work(b"cd cd cd cd cd\n", |begun| {
            replaced.push(begun.number);
            training.begin(begun);
        });
        let vocabulary = counted.vocabulary();
        let number = vocabulary.find(b"cd").unwrap();
        assert_eq!(replaced[0], number);
        assert!(training.outputs(&[number]).iter().all(|value| *value == 0.0));
        assert_eq!(training.generator().vector(b"cd"), training.vectors(&[number]));
    }
}
