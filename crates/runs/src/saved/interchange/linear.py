
FACTOR, ALL = 116049371, (1 << 64) - 1

@functools.lru_cache(1 << 20)
def extended(word: str):
    """The hash of a word, sign-extended to 64 bits."""
    number = 2166136261
    for byte in word.encode("utf-8", "surrogateescape"):
        number = (number ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619 & 0xFFFFFFFF
    return number | 0xFFFFFFFF00000000 if number >> 31 else number

def joined(number: int, added: int):
    return number * FACTOR + added & ALL

def padded(lists, kind: str):
    table = numpy.zeros((len(lists), max([1, *map(len, lists)])), kind)
    for row, found in zip(table, lists):
        row[: len(found)] = found
    return table

def rows_of(met):
    """The numbers whose bits are set, and -1."""
    return numpy.append(numpy.unpackbits(met.view("uint8"), bitorder="little").nonzero()[0], -1)

def positions(ascending, numbers):
    """The place of each number in a list of rows_of, or -1."""
    found = numpy.searchsorted(ascending[:-1], numbers)
    return numpy.where(ascending[found] == numbers, found, -1)

class NGrams:
    """The n-grams of a model. `features(words)` has the rows of those in a text, and the factor of each row."""

    def __init__(self, about):
        self.settings = about["settings"]
        names = [name if isinstance(name, str) else bytes(name).decode("utf-8", "replace")
                 for name in (label["name"] for label in about["labels"])]
        classes = about.get("classes") or []
        place = lambda at: (classes.index(names[at]) if names[at] in classes else len(classes), names[at].encode())
        self.order = sorted(range(len(names)), key=place)  # of labels, as users see them
        self.labels = [names[at] for at in self.order]

    def inputs(self, texts):
        found = [self.features(words) for words in texts]
        return {"rows": padded([rows for rows, _ in found], "int64"),
                "values": padded([values for _, values in found], "float32")}

class Linear(NGrams):
    """One weight per n-gram and classifier."""

    def __init__(self, about, arrays, words):
        super().__init__(about)
        self.training, self.weights, self.biases = self.settings["training"], arrays["weights"], arrays["biases"][0]
        if not len(self.weights):  # A text without a row has row 0, with the factor 0.
            self.weights = numpy.zeros((1, len(self.biases)), "float32")
        self.frequencies = arrays["frequencies"][:, 0] if self.settings["has_frequencies"] else None
        if "hashed" in self.training["table"]:
            self.bits, self.hashes = self.training["table"]["hashed"]["bits"], rows_of(arrays["met"])
        else:
            self.bits, self.numbers = None, {word: number for number, word in enumerate(words, start=1)}
            self.rows = {low | high << 64: row for row, (low, high) in enumerate(arrays["ngrams"].tolist())}

    def ngrams(self, words):
        """The numbers of n-grams, of pairs of words with others between them, and of the n-grams of the end."""
        if self.bits:
            words, join, end = [extended(word) for word in words], joined, 1 << 41
            pair = lambda first, last, distance: joined(joined(first, last), 1 << 40 | distance)
        else:
            words, end = [self.numbers.get(word) for word in words], ALL >> 32
            join = lambda number, added: number << 32 | added
            pair = lambda first, last, distance: join(join(first, end - distance), last)
        known = lambda word: word is not None
        for at, first in enumerate(words):
            if known(first):
                others = itertools.takewhile(known, words[at + 1 : at + self.training["ngrams"]])
                yield from itertools.accumulate(others, join, initial=first)
                for distance, last in enumerate(words[at + 2 : at + 2 + self.training["gap"]], start=2):
                    if known(last):
                        yield pair(first, last, distance)
        for at in range(max(len(words) - self.training["ending"], 0), len(words)):
            if known(words[at]):
                yield (number := join(words[at], end))
                if at + 1 < len(words) and known(words[at + 1]):
                    yield join(number, words[at + 1])

    def features(self, words):
        if self.bits:
            mixed = ((number ^ number >> 32) * 0x9E3779B97F4A7C15 & ALL for number in self.ngrams(words))
            found = Counter(number >> 64 - self.bits for number in mixed)
            rows = positions(self.hashes, numpy.fromiter(found, "int64", len(found)))
        else:
            found = Counter(self.ngrams(words))
            rows = numpy.array([self.rows.get(number, -1) for number in found], "int64")
        values = numpy.fromiter(found.values(), "float32", len(found))
        if (counting := self.training["counting"]) != "linear":
            values = numpy.ones_like(values) if counting == "binary" else 1 + numpy.log(values)
        rows, values = rows[rows >= 0], values[rows >= 0]
        if self.training["is_normalized"] and len(rows):
            frequencies = 1 if self.frequencies is None else self.frequencies[rows]
            values = values / numpy.sqrt(numpy.cumsum((values * frequencies) ** 2)[-1])
        return rows, values

    def scores(self, rows, values):
        """The score of each classifier, summed in the order of `ngrams predict`."""
        return numpy.cumsum(self.weights[rows] * values[..., None], 1)[:, -1] + self.biases

    def outputs(self, rows, values):
        """The output that is added to each of an LSTM."""
        scores = self.scores(rows, values)
        if self.settings["outputs"] == "two":
            return scores if self.order[1] == 0 else -scores
        return scores[:, self.order]

    def probabilities(self, rows, values):
        sigmoids = self.settings["sigmoids"]
        slopes, offsets = (numpy.array([of[name] for of in sigmoids], "float32") for name in ("slope", "offset"))
        found = sigmoid(self.scores(rows, values) * slopes + offsets)
        if self.settings["outputs"] == "two":
            found = numpy.hstack([found, 1 - found])
        elif self.settings["outputs"] == "one_of":
            found = found / numpy.maximum(found.sum(1, keepdims=True), numpy.finfo("float32").tiny)
        return found[:, self.order]

    def is_known(self, words, rows):
        return len(rows) > 0
