"""Reviews for a measurement of speed: 40 words on average, 20 % at the cap of 100.

usage: generated.py ROWS >reviews.jsonl

12,000 words with Zipf frequencies, each with a mood; the rating follows from the moods of the words.
"""

import json
import random
import sys

WORDS = 12_000
CAP = 100
AT_CAP = 0.2
# Gives rows a mean length of 40.
SHORT_MEAN = (40 - AT_CAP * CAP) / (1 - AT_CAP)
SYLLABLES = ["ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "pa", "re", "si", "to", "va", "wo", "ze", "cha"]


def word(number: int) -> str:
    """Returns a word of four syllables, which no stop word has."""
    return "".join(SYLLABLES[number >> shift & 15] for shift in (0, 4, 8, 12))


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = random.Random(1)
    words = [word(number * 7919 % 65_536) for number in range(WORDS)]
    moods = [source.gauss(0, 1) for _ in range(WORDS)]
    for _ in range(int(sys.argv[1])):
        at_cap = source.random() < AT_CAP
        length = CAP + source.randrange(50) if at_cap else source.randrange(1, 2 * int(SHORT_MEAN))
        found = [min(int(WORDS ** source.random()), WORDS - 1) for _ in range(length)]
        mood = sum(moods[number] for number in found) / length**0.5 + source.gauss(0, 0.5)
        rating = 5 if mood > 0.5 else 4 if mood > 0 else 2 if mood > -0.5 else 1
        print(json.dumps({"reviewText": " ".join(words[number] for number in found), "overall": rating}))


main()
