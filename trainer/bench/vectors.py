"""Word vectors of unlabelled texts for `trainer fit --init-from`, by gensim's skip-gram.

usage: vectors.py MANIFEST OUT < RECORDS
  MANIFEST  manifest of the training dataset, whose stop words are excluded here too
  OUT       output: vectors as .vec text
  RECORDS   output of the mapper; the text before the tab is used

Uses one thread, so that the same records give the same vectors. Values have a standard deviation of 0.4: the embedding is
trained further, and smaller values would change more at the same learning rate.
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
    # One object per word, not per occurrence.
    words = (map(sys.intern, record.partition("\t")[0].split(" ")) for record in records)
    texts = [[word for word in text if word not in stop_words] for text in words]
    settings = {"vector_size": 100, "sg": 1, "window": 5, "negative": 5, "sample": 1e-4, "min_count": 5}
    vectors = Word2Vec(texts, epochs=3, workers=1, seed=1, **settings).wv
    vectors.vectors *= DEVIATION / vectors.vectors.std()
    # Renamed when complete: imdb.py skips existing files.
    unfinished = Path(f"{sys.argv[2]}.unfinished")
    vectors.save_word2vec_format(unfinished)
    unfinished.rename(sys.argv[2])


main()
