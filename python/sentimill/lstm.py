# The LSTM of a model folder in NumPy. `trainer export` copies this file into `predict.py`.
#
# B: texts; T: words of the longest one; E: embedding dimension; H: hidden size.

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

Array = NDArray[Any]

PADDED_TOKENS = 1 << 15
"""Maximum B * T of a batch, unless one text is longer."""
STEPS = 256
"""Steps whose gates are in memory together."""


def tensors(raw: bytes) -> dict[str, Array]:
    """Returns the arrays of a safetensors file."""
    kinds = {"F32": "<f4", "F64": "<f8", "U64": "<u8"}
    begin = 8 + int.from_bytes(raw[:8], "little")
    found = {}
    for name, at in json.loads(raw[8:begin]).items():
        if name != "__metadata__":
            first, end = at["data_offsets"]
            found[name] = numpy.frombuffer(raw[begin + first : begin + end], kinds[at["dtype"]]).reshape(at["shape"])
    return found


def sigmoid(numbers: Array) -> Array:
    with numpy.errstate(over="ignore"):
        return 1 / (1 + numpy.exp(-numbers))


def softmax(logits: Array) -> Array:
    powers = numpy.exp(logits - logits.max(1, keepdims=True))
    found: Array = powers / powers.sum(1, keepdims=True)
    return found


class Lstm:
    """The model of the content of config.json, model.safetensors and vocabulary.txt.

    ``clean(text, has_symbols)`` cleans a text. ``ngrams(texts)`` returns what the n-grams of a model that has some add
    to the outputs, for texts of known words.
    """

    def __init__(
        self,
        config: bytes,
        weights: bytes,
        vocabulary: bytes,
        clean: Callable[[str, bool], str],
        ngrams: Callable[[list[list[str]]], Array],
    ) -> None:
        self.config, self.weights = json.loads(config), tensors(weights)
        self.clean, self.ngrams, self.preparation = clean, ngrams, self.config["preparation"]
        self.ids = {word: id for id, word in enumerate(vocabulary.decode("utf-8").split("\n")[:-1], start=2)}
        self.head: dict[str, float] | None = self.config["model"].get("head")
        self.stop_words = frozenset(self.preparation["stop_words"])

    def read(self, text: str) -> tuple[list[str], str | None]:
        """Returns the words of a text that the model reads, or the reason why there is no answer."""
        words = self.clean(text, self.preparation["cleaning_version"] == 2).split()
        if not words:
            return [], "empty_text" if text.strip(" \t") else "blank"
        if not (words := [word for word in words if word not in self.stop_words]):
            return [], "only_stopwords"
        if 0 < (most := self.preparation["max_tokens"]) < len(words):
            front = {"first": most, "last": 0, "ends": (most + 1) // 2}[self.preparation["keep"]]
            words = words[:front] + words[len(words) - most + front :]
        words = words[: self.config["tokens_max"] or None]
        return (words, None) if any(word in self.ids for word in words) else ([], "only_unknown")

    def numbers(self, words: list[str]) -> list[int]:
        """Returns the ids of words; 1 is that of an unknown word."""
        return [self.ids.get(word, 1) for word in words]

    def known(self, texts: list[list[str]]) -> list[list[str]]:
        """Returns the known words of texts."""
        return [[word for word in words if word in self.ids] for words in texts]

    def outputs(self, texts: Sequence[list[str]]) -> Array:
        """Returns the outputs of the model, [B, outputs], for the words of texts, in batches of similar length."""
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        found = numpy.zeros((len(texts), len(self.weights["output.bias"])))
        while order:
            places = order[: max(PADDED_TOKENS // len(texts[order[0]]), 1)]
            order = order[len(places) :]
            found[places] = self.batch([texts[place] for place in places])
        return found

    def batch(self, texts: list[list[str]]) -> Array:
        """Returns the outputs, [B, outputs], for texts in descending order of length."""
        lengths = numpy.array([len(words) for words in texts])
        tokens = numpy.zeros((lengths[0], len(texts)), "int64")
        for at, words in enumerate(texts):
            tokens[: len(words), at] = self.numbers(words)
        times = numpy.arange(lengths[0])[:, None]
        is_word = (times < lengths)[..., None]
        backward = numpy.maximum(lengths - 1 - times, 0)[..., None]
        states, sizes = self.weights["embedding.weight"][tokens], self.config["model"]["lstm"]
        for layer in range(sizes["layers"]):
            forward, last = self.direction(states, lengths, f"l{layer}")
            if sizes["bidirectional"]:
                reverse, first = self.direction(
                    numpy.take_along_axis(states, backward, 0), lengths, f"l{layer}_reverse"
                )
                forward = numpy.concatenate([forward, numpy.take_along_axis(reverse, backward, 0)], 2)
                last = numpy.concatenate([last, first], 1)
            states = forward
        if sizes["head"]["classifier"]["pool"] != "last":
            mean = numpy.where(is_word, states, 0).sum(0) / lengths[:, None].astype(states.dtype)
            last = numpy.concatenate([mean, numpy.where(is_word, states, -numpy.inf).max(0)], 1)
        hidden = numpy.maximum(last @ self.weights["linear.weight"].T + self.weights["linear.bias"], 0)
        outputs: Array = hidden @ self.weights["output.weight"].T + self.weights["output.bias"]
        if self.head:
            outputs = self.head["lstm"] * outputs + self.head["ngrams"] * self.ngrams(self.known(texts))
        return outputs

    def direction(self, inputs: Array, lengths: Array, name: str) -> tuple[Array, Array]:
        """Returns the states of a layer, [T, B, H], for its inputs, [T, B, E], and the last state of texts, [B, H]."""
        of_inputs, of_state, bias, other_bias = (
            self.weights[f"lstm.{kind}_{name}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        size, n_steps = of_state.shape[1], len(inputs)
        states = numpy.zeros((*inputs.shape[:2], size), bias.dtype)
        state, cell = numpy.zeros_like(states[0]), numpy.zeros_like(states[0])
        for time in range(n_steps):
            if time % STEPS == 0:
                gates = inputs[time : time + STEPS] @ of_inputs.T + (bias + other_bias)
            n = int((lengths > time).sum())
            now = gates[time % STEPS, :n] + state[:n] @ of_state.T
            candidate = numpy.tanh(now[:, 2 * size : 3 * size])
            entered, kept, _, shown = numpy.split(sigmoid(now), 4, 1)
            cell[:n] = kept * cell[:n] + entered * candidate
            state[:n] = shown * numpy.tanh(cell[:n])
            states[time, :n] = state[:n]
        return states, state

    def decide(self, outputs: Array) -> dict[str, Array]:
        """Returns what a line of `trainer predict` has for the outputs of each text, [B]: ``label``, and of two classes
        ``score``, and ``probability`` or ``rating``; of more, ``probabilities`` [B, classes]."""
        (kind, about), calibration = kind_of(self.config["scoring"]), self.config.get("calibration") or {}
        outputs, threshold = outputs.astype("float64"), 0.0
        if kind == "classes":
            probabilities = calibrated(calibration, softmax(outputs).astype("float32"))
            return {"label": probabilities.argmax(1), "probabilities": probabilities}
        if kind == "five-ratings":
            score, threshold = softmax(outputs)[:, about["positive_from"] - 1 :].sum(1), 0.5
        else:
            score = outputs[:, 0] - (about["positive_from"] - 0.5 if kind == "rating" else 0)
        score = score.astype("float32")
        label, found = score > threshold, {"score": score}
        if kind == "rating":
            found["rating"] = outputs[:, 0].astype("float32")
        else:
            probability = probability_of(kind, calibration, score)
            label = probability > 0.5 if "platt" in calibration else label
            found["probability"] = probability.astype("float32")
        if chosen := self.config.get("threshold"):
            label = score > numpy.float32(chosen["score"])
        return {"label": label.astype("int64")} | found


def kind_of(scoring: Any) -> tuple[str, dict[str, int]]:
    """Returns the kind of a scoring, and its settings."""
    kind, about = (scoring, {}) if isinstance(scoring, str) else next(iter(scoring.items()))
    return kind, about


def probability_of(kind: str, calibration: dict[str, Any], score: Array) -> Array:
    """Returns the calibrated probability of label 1 for the scores of two classes."""
    probability = log_odds = score.astype("float64")
    if kind == "five-ratings":
        with numpy.errstate(divide="ignore"):
            log_odds = numpy.clip(numpy.log(probability) - numpy.log(numpy.maximum(1 - probability, 0)), -16, 16)
    if kind == "logit" or calibration:
        platt = calibration.get("platt", {"slope": 1 / calibration.get("temperature", 1), "intercept": 0})
        probability = sigmoid(platt["slope"] * log_odds + platt["intercept"])
    return probability


def calibrated(calibration: dict[str, Any], probabilities: Array) -> Array:
    """Returns the calibrated probabilities of three or more classes, [B, classes]."""
    if not calibration:
        return probabilities
    logits = numpy.log(numpy.maximum(probabilities, numpy.finfo("float32").tiny).astype("float64"))
    return softmax(logits / calibration["temperature"]).astype("float32")
