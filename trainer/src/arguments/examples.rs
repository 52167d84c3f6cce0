//! Examples at the end of the long help of each command.

pub(super) const MORE: &str = "--help shows all options and examples.";

pub(super) const EXAMPLES: &str = "\
Examples:
  trainer fit reviews.h5
      Train a classifier; the training folder is reviews.model

  trainer predict reviews.model new.json.gz
      Classify new reviews with it";

pub(super) const FIT_EXAMPLES: &str = "\
Examples:
  trainer fit reviews.h5
      Train on a dataset; the training folder is reviews.model

  trainer fit train.h5 --test test.h5 --lr 0.001 -o sentiment
      Train on train.h5 and test on test.h5, with a lower learning rate";

pub(super) const PRETRAIN_EXAMPLES: &str = "\
Examples:
  trainer pretrain reviews.h5
      Pretrain on all reviews, for `fit --init-from reviews.pretrained`

  trainer pretrain reviews.h5 --epochs 2 --hidden 128 -o large
      Pretrain for two epochs on larger layers";

pub(super) const NGRAMS_EXAMPLES: &str = "\
Examples:
  trainer ngrams --input train.txt --format fasttext -o sentiment
      Train on lines of a label and a text, in seconds

  trainer ngrams --input reviews.json.gz --model fasttext --dim 20 --epochs 10
      Train embeddings of words and word pairs on reviews with ratings";

pub(super) const AUTOTUNE_EXAMPLES: &str = "\
Examples:
  trainer autotune ngrams --input train.json --validation dev.json --minutes 5
      Search settings of an n-gram model for five minutes

  trainer autotune fit reviews.h5 --minutes 60
      Search settings of an LSTM model on the validation split of a dataset";

pub(super) const AUTOTUNE_NGRAMS_EXAMPLES: &str = "\
Examples:
  trainer autotune ngrams --input train.json --validation dev.json --minutes 5
      Search all settings for five minutes, and print the best as a command

  trainer autotune ngrams --input train.txt --format fasttext --model fasttext \\
      --dim 10 --validation dev.txt --minutes 1 --metric f1
      Search the other settings of a fasttext model of dimension 10";

pub(super) const AUTOTUNE_FIT_EXAMPLES: &str = "\
Examples:
  trainer autotune fit reviews.h5 --minutes 60
      Search for an hour on the validation split of reviews.h5

  trainer autotune fit train.h5 --validation dev.h5 --hidden 64 --minutes 30
      Search the other settings on another dataset, with hidden size 64";

pub(super) const EVALUATE_EXAMPLES: &str = "\
Examples:
  trainer evaluate reviews.model test.h5 other.h5
      Evaluate a model on two datasets that have its vocabulary

  trainer evaluate reviews.model reviews.h5 --test-fraction 0.1
      Evaluate it on the test split of its own dataset";

pub(super) const EMBED_EXAMPLES: &str = "\
Examples:
  trainer embed --input novels.txt.gz
      Train vectors of all words that occur five times

  tail -n +1 -F reviews.txt | trainer embed --input - --out reviews.vectors
      Train on lines as they arrive; Ctrl-C saves a checkpoint and the model";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  trainer serve --folder served --listen 127.0.0.1:7070 --workers 2
      Hold the rows for two workers, which are started as
      trainer embed --input FILE --async 127.0.0.1:7070 --worker 0/2 (and 1/2)

  trainer serve --statistics 127.0.0.1:7070
      Print what the server has done";

pub(super) const PREDICT_EXAMPLES: &str = "\
Examples:
  trainer predict reviews.model new.json.gz > answers.jsonl
      Classify reviews in compressed files

  echo 'a good book' | trainer predict reviews.model --format text
      Classify one text per line from standard input";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  trainer explain reviews.model 'a good book, but the cover was torn'
      Show the words that increase or decrease the label's probability

  trainer explain reviews.model --input new.json.gz --json > explained.jsonl
      Explain the predictions for a file, one JSON object per line";

pub(super) const EXPORT_EXAMPLES: &str = "\
Examples:
  trainer export reviews.model
      Write the model with predict.py and tokenizer.json

  trainer export reviews.model --out /models/sentiment
      Write it to another folder";

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  trainer report reviews.model
      Write report.html about one training

  trainer report small large deep --out compared.html
      Compare three trainings";

pub(super) const LAUNCH_EXAMPLES: &str = "\
Examples:
  trainer launch --nproc 4 -- fit reviews.h5
      Train on four processes

  trainer launch --nproc 2 --log-dir logs -- evaluate reviews.model test.h5
      Evaluate on two processes, with one log file per process";

pub(super) const VECTORS_EXAMPLES: &str = "\
Examples:
  trainer vectors neighbours words.model film
      Print the words nearest to a word

  trainer vectors convert words.model --out words.bin
      Write the vectors as a model of fastText";

pub(super) const NEIGHBOURS_EXAMPLES: &str = "\
Examples:
  trainer vectors neighbours words.model film actor
      Print the ten words nearest to each word

  trainer vectors neighbours cc.en.vec film --top 3 --json
      Print the three nearest words of a file of fastText, as JSON";

pub(super) const ANALOGY_EXAMPLES: &str = "\
Examples:
  trainer vectors analogy words.model man king woman
      Print words that are to woman as king is to man

  trainer vectors analogy words.model --questions questions-words.txt
      Print the accuracy of each section of a file";

pub(super) const SIMILARITY_EXAMPLES: &str = "\
Examples:
  trainer vectors similarity words.model EN-WS-353-ALL.txt EN-SIMLEX-999.txt
      Compare the cosines of word pairs with the scores of two files

  trainer vectors similarity words.vec pairs.txt
      Compare the vectors of a file";

pub(super) const PIP_EXAMPLES: &str = "\
Examples:
  trainer vectors pip words.model other.vec
      Compare two sets of word vectors

  trainer vectors pip words.model --corpus train.txt --window 5 --shift 5
      Compare word vectors with the factor of a text's PPMI matrix";

pub(super) const CONVERT_EXAMPLES: &str = "\
Examples:
  trainer vectors convert words.model --out words.w2v
      Write the binary format of word2vec, which gensim reads

  trainer vectors convert cc.en.300.bin --out english
      Write a model of fastText as a model folder";
