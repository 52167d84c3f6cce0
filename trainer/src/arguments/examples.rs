//! Examples at the end of the long help of each command.

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

pub(super) const AUTOTUNE_EXAMPLES: &str = "\
Examples:
  trainer autotune reviews.h5 --minutes 60
      Search for an hour on the validation split of reviews.h5

  trainer autotune train.h5 --validation dev.h5 --hidden 64 --minutes 30
      Search the other settings on another dataset, with hidden size 64";

pub(super) const EVALUATE_EXAMPLES: &str = "\
Examples:
  trainer evaluate reviews.model test.csv --text-field review \\
      --label-field kind --wrong wrong.csv
      Evaluate a model on a table, and write the wrong predictions

  trainer evaluate reviews.model reviews.h5 --test-fraction 0.1
      Evaluate it on the test split of its own dataset";

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

  trainer export reviews.model --out reviews.onnx
      Write it as a file of ONNX";

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
