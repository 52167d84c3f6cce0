"""Word vectors of unlabelled texts for `trainer fit --init-from`, by gensim's skip-gram.

usage: vectors.py MANIFEST OUT < RECORDS
  MANIFEST  that of the dataset which will be trained on: its stop words are left out here too
  OUT       the vectors, in .vec text
  RECORDS   what the mapper prints; of each line the words before the tab are read

One thread, so that the same records give the same vectors. Numbers have a deviation of 0.4: the embedding is trained
further, and smaller ones would be changed more by the same rate.
"""

import json
import sys
from pathlib import Path

import gensim
from gensim.models import Word2Vec

GENSIM = "4.4.0"
DEVIATION = 0.4


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if gensim.__version__ != GENSIM:
        sys.exit(f"gensim {gensim.__version__}, expected {GENSIM}: pip install gensim=={GENSIM}")
    manifest = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    stop_words = frozenset(manifest["seal"]["settings"]["stop_words"])
    records = sys.stdin.buffer.read().decode("utf-8").splitlines()
    # One object a word, not one an occurrence.
    words = (map(sys.intern, record.partition("\t")[0].split(" ")) for record in records)
    texts = [[word for word in text if word not in stop_words] for text in words]
    settings = {"vector_size": 100, "sg": 1, "window": 5, "negative": 5, "sample": 1e-4, "min_count": 5}
    vectors = Word2Vec(texts, epochs=3, workers=1, seed=1, **settings).wv
    vectors.vectors *= DEVIATION / vectors.vectors.std()
    # Whole or not at all: imdb.py does not make again what is there.
    unfinished = Path(f"{sys.argv[2]}.unfinished")
    vectors.save_word2vec_format(unfinished)
    unfinished.rename(sys.argv[2])


main()
