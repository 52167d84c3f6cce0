
def tree_of(counts):
    """The children of each inner node of the tree of labels: the two nodes of the smallest counts are joined first."""
    n, sums, leaf, node, children = len(counts), counts + [10**15] * (len(counts) - 1), len(counts), len(counts), []
    for parent in range(n, 2 * n - 1):
        pair = []
        for _ in range(2):
            if leaf > 0 and sums[leaf - 1] < sums[node]:
                leaf -= 1
                pair.append(leaf)
            else:
                pair.append(node)
                node += 1
        sums[parent] = sum(sums[child] for child in pair)
        children.append(pair)
    return children

class FastText(NGrams):
    """The mean of embeddings of words and n-grams, then a linear layer."""

    def __init__(self, about, arrays, words):
        super().__init__(about)
        self.numbers, self.met = {word: number for number, word in enumerate(words)}, rows_of(arrays["met"])
        self.input, self.output = arrays["input"], arrays["output"]
        if self.settings["loss"] == "hierarchical-softmax":
            self.tree = tree_of([label["texts"] for label in about["labels"]])

    def characters(self, word: str):
        """The character n-grams of a word. A byte that is not UTF-8 begins no character if it continues one."""
        shortest, longest = self.settings["characters_min"], self.settings["characters_max"]
        if not longest or word == "</s>":
            return
        parts = re.findall(rb"(?s).[\x80-\xbf]*", b"<" + word.encode("utf-8", "surrogateescape") + b">")
        for at in range(len(parts)):
            for end in range(at + max(shortest, 1), min(at + longest, len(parts)) + 1):
                if end - at > 1 or 0 < at < len(parts) - 1:
                    yield extended(b"".join(parts[at:end]).decode("utf-8", "surrogateescape")) & 0xFFFFFFFF

    def features(self, words):
        n_words, buckets, rows = len(self.numbers), self.settings["buckets"], []
        hashes = [extended(word) for word in words]
        for word, number in zip(words, hashes):
            if word in self.numbers:
                rows.append(self.numbers[word])
            elif buckets and self.settings["hashes_unknown"]:
                rows.append(n_words + number % buckets)
            rows += [n_words + number % buckets for number in self.characters(word)] if buckets else []
        for at in range(len(words) if buckets else 0):
            joins = itertools.accumulate(hashes[at : at + self.settings["ngrams"]], joined)
            rows += [n_words + number % buckets for number in itertools.islice(joins, 1, None)]
        found = positions(self.met, numpy.array(rows, "int64"))
        n_rows = len(rows) if self.settings["counts_all"] else (found >= 0).sum()
        return (found := found[found >= 0]), numpy.full(len(found), 1 / max(n_rows, 1), "float32")

    def probabilities(self, rows, values):
        sums = numpy.cumsum(self.input[rows] * (values > 0)[..., None], 1, "float32")[:, -1] if rows.size else 0
        mean = numpy.zeros((len(rows), self.input.shape[1]), "float32") + sums * values.max(1, initial=0, keepdims=True)
        if self.settings["loss"] == "softmax":
            found = numpy.exp((outputs := mean @ self.output.T) - outputs.max(1, keepdims=True))
            found = found / found.sum(1, keepdims=True)
        elif self.settings["loss"] == "hierarchical-softmax":
            outputs, n = mean @ self.output.T, len(self.output)
            lefts, rights = sigmoid(-outputs), sigmoid(outputs)
            found = numpy.ones((len(rows), 2 * n - 1), "float32")
            for inner, (left, right) in reversed([*enumerate(self.tree)]):
                found[:, left] = found[:, n + inner] * lefts[:, inner]
                found[:, right] = found[:, n + inner] * rights[:, inner]
            found = found[:, :n]
        elif self.settings["words"] != "spaces":
            found = sigmoid(mean @ self.output.T)
        else:  # As the fastText program: one product at a time, and the logistic function from a table of steps of 1/32.
            fma = lambda total, pair: (numpy.outer(pair[0].astype("float64"), pair[1]) + total).astype("float32")
            found = functools.reduce(fma, zip(mean.T, self.output.T), numpy.zeros((len(rows), len(self.output)), "float32"))
            steps = numpy.trunc((numpy.clip(found, -8, 8) + 8) * 32) / 32 - 8
            found = numpy.where(found < -8, 0, numpy.where(found > 8, 1, sigmoid(steps))).astype("float32")
        return found[:, self.order]

    def is_known(self, words, rows):
        settings = self.settings
        return settings["characters_max"] > 0 or settings["hashes_unknown"] or any(
            word != "</s>" and word in self.numbers for word in words)

model = {"linear": Linear, "fasttext": FastText}[about["kind"]](about, stored, vocabulary)
