"""Scores cleaned texts with the model in this folder. It requires PyTorch only.

Standard input: one text per line, cleaned by the mapper, with single spaces between words. Any other text is refused.
Standard output: one score per line, that of `trainer predict`; nan for a text without tokens. For three or more classes,
a line has the probability of each class, separated by spaces, in the order of `labels` in config.json. `import predict`
loads the model and reads no input; `predict.score(text)` returns the score of one text, or the list of probabilities; it
raises a ValueError for a text that is not cleaned.
"""
import json, sys, unicodedata
from pathlib import Path
import torch

folder = Path(__file__).resolve().parent
config = json.loads((folder / "config.json").read_bytes())
sizes, rows, scoring = config["model"]["lstm"], config["preparation"], config["scoring"]
ids = {word: id for id, word in enumerate((folder / "vocabulary.txt").read_text("utf-8").split("\n")[:-1], start=2)}
kinds = {"F32": torch.float32, "F64": torch.float64, "U64": torch.int64}

def tensors(name: str):
    raw = bytearray((folder / name).read_bytes())
    begin = 8 + int.from_bytes(raw[:8], "little")
    return {name: torch.frombuffer(raw[begin + at["data_offsets"][0] : begin + at["data_offsets"][1]], dtype=kinds[at["dtype"]])
            .view(at["shape"]) for name, at in json.loads(raw[8:begin]).items() if name != "__metadata__"}

weights = tensors("model.safetensors")
lstm = torch.nn.LSTM(sizes["embedding"], sizes["hidden"], sizes["layers"],
                     bidirectional=sizes["bidirectional"], dtype=weights["embedding.weight"].dtype)
lstm.load_state_dict({name[5:]: weight for name, weight in weights.items() if name.startswith("lstm.")})

class NGrams:
    """The n-grams of a model that has some: the score of each class is added to the outputs of the LSTM."""
    FACTOR, ALL = 116049371, (1 << 64) - 1

    def __init__(self):
        about, stored = json.loads((folder / "ngrams.json").read_bytes()), tensors("ngrams.safetensors")
        self.settings, labels = about["settings"]["training"], [label["name"] for label in about["labels"]]
        self.bits, self.is_two = self.settings["table"]["hashed"]["bits"], len(labels) == 2
        self.places = [labels.index(name) for name in about.get("classes") or sorted(labels, key=str.encode)]
        met = stored["met"].view(torch.uint8)
        self.hashes = (met[:, None] >> torch.arange(8, dtype=torch.uint8) & 1).flatten().nonzero().flatten()
        self.weights, self.biases = stored["weights"], stored["biases"][0]

    def mixed(self, number: int):
        return ((number ^ number >> 32) * 0x9E3779B97F4A7C15 & self.ALL) >> 64 - self.bits

    def extended(self, word: str):
        number = 2166136261
        for byte in word.encode():
            number = (number ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619 & 0xFFFFFFFF
        return number | 0xFFFFFFFF00000000 if number >> 31 else number

    def numbers(self, words):
        """The numbers of n-grams, of pairs of words with others between them, and of the n-grams of the end."""
        join = lambda number, added: number * self.FACTOR + added & self.ALL
        words, last = [self.extended(word) for word in words], max(len(words) - self.settings["ending"], 0)
        for at, start in enumerate(words):
            number = start
            yield number
            for word in words[at + 1 : at + self.settings["ngrams"]]:
                number = join(number, word)
                yield number
            for distance, word in enumerate(words[at + 2 : at + 2 + self.settings["gap"]], start=2):
                yield join(join(start, word), 1 << 40 | distance)
            if at >= last:
                yield (number := join(start, 1 << 41))
                if at + 1 < len(words):
                    yield join(number, words[at + 1])

    def outputs(self, words):
        found = torch.tensor(sorted({self.mixed(number) for number in self.numbers(words)}), dtype=torch.int64)
        rows = torch.searchsorted(self.hashes, found).clamp(max=len(self.hashes) - 1)
        scores = self.weights[rows[self.hashes[rows] == found]].double().sum(0) + self.biases
        return scores[0] * (1 if self.places[1] == 0 else -1) if self.is_two else scores[self.places]

# With words of punctuation, numbers are as letters, and punctuation and symbols are words of one character.
letters, symbols = ("LN", "PS") if rows["cleaning_version"] == 2 else ("L", "")
head = config["model"].get("head")
ngrams = head and NGrams()

def check(text: str):
    """Refuses a text that the mapper would change: it has lower-case letters with their marks, ' inside words, single spaces."""
    before = " "
    for at, (here, after) in enumerate(zip(text, text[1:] + " "), start=1):
        kind = unicodedata.category(here)
        if here in " '":
            is_cleaned = before != " " and (here == "'" and after != " " or here == " " and at < len(text))
        elif kind[0] == "M":
            is_cleaned = unicodedata.category(before)[0] in letters + "MC"
        else:  # The tables of this Python may lack a letter of Unicode 17.
            is_cleaned = kind[0] in letters and here == here.lower() or kind == "Cn"
            is_cleaned |= kind[0] in symbols and here == here.lower() and before == after == " "
        if not is_cleaned:
            name = unicodedata.name(here, f"U+{ord(here):04X}").lower()
            raise ValueError(f"found {here!r} ({name}) at character {at}, expected a cleaned text: lower-case letters, ' inside "
                             f"words, single spaces; clean it with `mapper{' --punctuation' * bool(symbols)}` (its output before "
                             "the tab), or use `trainer predict`")
        before = here

@torch.no_grad()
def score(text: str):
    check(text)
    words = [word for word in text.split() if word not in rows["stop_words"]]
    if 0 < (most := rows["max_tokens"]) < len(words):
        front = {"first": most, "last": 0, "ends": (most + 1) // 2}[rows["keep"]]
        words = words[:front] + words[len(words) - most + front :]
    if not (words := words[: config["tokens_max"] or None]):
        return float("nan")
    states, _ = lstm(weights["embedding.weight"][[ids.get(word, 1) for word in words]])
    ends = [states[-1, : sizes["hidden"]], states[0, sizes["hidden"] :]]
    pooled = torch.cat(ends if sizes["head"]["classifier"]["pool"] == "last" else [states.mean(0), states.amax(0)])
    hidden = torch.relu(weights["linear.weight"] @ pooled + weights["linear.bias"])
    outputs = weights["output.weight"] @ hidden + weights["output.bias"]
    if head:
        outputs = head["lstm"] * outputs + head["ngrams"] * ngrams.outputs([word for word in words if word in ids])
    if "classes" in scoring:
        temperature = (config.get("calibration") or {}).get("temperature", 1)
        return (outputs / temperature).softmax(0).tolist()
    if "five-ratings" in scoring:
        return outputs.softmax(0)[scoring["five-ratings"]["positive_from"] - 1 :].sum().item()
    return outputs.item() - (scoring["rating"]["positive_from"] - 0.5 if "rating" in scoring else 0)

if __name__ == "__main__":
    for number, line in enumerate(sys.stdin, start=1):
        try:
            found = score(line.removesuffix("\n"))
        except ValueError as error:
            print(f"predict.py: line {number}: {error}", file=sys.stderr)
            sys.exit(65)
        print(*(found if isinstance(found, list) else [found]), flush=True)
