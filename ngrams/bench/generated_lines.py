"""Texts of 130 words in fastText's format with two labels, for measurements of speed and memory. Requires NumPy.

usage: generated_lines.py TEXTS [SEED] >lines.txt

500,000 words with Zipf frequencies, each with a mood; the label follows from the moods of the words. The words and their
moods do not depend on the seed, so that two seeds give texts for training and for a test. 560,000 texts have the size of
Yelp polarity.
"""

import sys

import numpy

WORDS = 500_000
LENGTH = 130
TEXTS_TOGETHER = 5_000
SYLLABLES = ["ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "pa", "re", "si", "to", "va", "wo", "ze", "cha"]


def word(number: int) -> str:
    """Returns a word whose length grows with its number: frequent words are short."""
    syllables = []
    while number >= 0:
        syllables.append(SYLLABLES[number & 15])
        number = (number >> 4) - 1
    return "".join(syllables)


def main() -> None:
    if len(sys.argv) not in (2, 3) or not all(argument.isdigit() for argument in sys.argv[1:]):
        sys.exit(__doc__)
    n_texts, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    names = [word(number) for number in range(WORDS)]
    moods = numpy.random.default_rng(0).normal(size=WORDS)
    source = numpy.random.default_rng(seed)
    for first in range(0, n_texts, TEXTS_TOGETHER):
        n = min(TEXTS_TOGETHER, n_texts - first)
        # The density of the rank r of a word is proportional to 1 / r.
        ranks = (WORDS ** source.random((n, LENGTH))).astype(numpy.int64) - 1
        mood = moods[ranks].sum(axis=1) / LENGTH**0.5 + source.normal(scale=0.5, size=n)
        lines = (
            f"__label__{1 + int(mood > 0)} {' '.join([names[rank] for rank in ranks])}\n"
            for ranks, mood in zip(ranks.tolist(), mood.tolist())
        )
        sys.stdout.write("".join(lines))


main()
