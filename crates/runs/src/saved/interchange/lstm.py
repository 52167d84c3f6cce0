"""Scores texts with the model in this folder. It requires NumPy and PyTorch.

Standard input: one text per line, as it was written; it is cleaned as by `trainer predict`.
Standard output: one score per line, that of `trainer predict`; nan for a text for which it has an error. For three or more
classes, a line has the probability of each class, separated by spaces, in the order of `labels` in config.json.

`import predict` reads no input. `predict.score(text)` returns the score of one text, or the list of probabilities.
`predict.scores(texts)` is faster for many texts. `predict.inputs(texts)` returns the inputs of the file that
`trainer export --out MODEL.onnx` writes; it does not load PyTorch. A text with the length 0 in them has no result.
"""
import functools, html.entities, itertools, json, re, sys, unicodedata
from collections import Counter
from pathlib import Path
import numpy

folder = Path(__file__).resolve().parent
config = json.loads((folder / "config.json").read_bytes())
rows, scoring, head = config["preparation"], config["scoring"], config["model"].get("head")
invalid = "replace"  # bytes that are not UTF-8
stop_words, has_symbols = set(rows["stop_words"]), rows["cleaning_version"] == 2
ids = {word: id for id, word in enumerate((folder / "vocabulary.txt").read_text("utf-8").split("\n")[:-1], start=2)}

def tensors(name: str):
    raw, kinds = bytearray((folder / name).read_bytes()), {"F32": "<f4", "F64": "<f8", "U64": "<u8"}
    begin = 8 + int.from_bytes(raw[:8], "little")
    return {name: numpy.frombuffer(raw[begin + at["data_offsets"][0] : begin + at["data_offsets"][1]], kinds[at["dtype"]])
            .reshape(at["shape"]) for name, at in json.loads(raw[8:begin]).items() if name != "__metadata__"}

@functools.cache
def model():
    import torch
    weights = {name: torch.from_numpy(found) for name, found in tensors("model.safetensors").items()}
    sizes = config["model"]["lstm"]
    lstm = torch.nn.LSTM(sizes["embedding"], sizes["hidden"], sizes["layers"], batch_first=True,
                         bidirectional=sizes["bidirectional"], dtype=weights["embedding.weight"].dtype)
    lstm.load_state_dict({name[5:]: weight for name, weight in weights.items() if name.startswith("lstm.")})
    return torch, lstm, weights

@functools.cache
def ngrams():
    return Linear(json.loads((folder / "ngrams.json").read_bytes()), tensors("ngrams.safetensors"), ())

def read(text: str):
    """The words of a text that the model reads; none for a text without known words."""
    words = [word for word in clean(text, has_symbols).split() if word not in stop_words]
    if 0 < (most := rows["max_tokens"]) < len(words):
        front = {"first": most, "last": 0, "ends": (most + 1) // 2}[rows["keep"]]
        words = words[:front] + words[len(words) - most + front :]
    words = words[: config["tokens_max"] or None]
    return words if any(word in ids for word in words) else []

def inputs(texts):
    return arrays([read(text) for text in texts])

def arrays(texts):
    found = {"tokens": padded([[ids.get(word, 1) for word in words] for words in texts], "int64"),
             "lengths": numpy.array([len(words) for words in texts], "int32")}
    return found | (ngrams().inputs([[word for word in words if word in ids] for words in texts]) if head else {})

def outputs(texts):
    torch, lstm, weights = model()
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
    found = arrays(texts)
    tokens, lengths = (torch.from_numpy(found[name]) for name in ("tokens", "lengths"))
    states, (last, _) = lstm(pack_padded_sequence(
        weights["embedding.weight"][tokens], lengths.long(), batch_first=True, enforce_sorted=False))
    if config["model"]["lstm"]["head"]["classifier"]["pool"] == "last":
        pooled = torch.cat([*last[-2 if lstm.bidirectional else -1 :]], 1)
    else:
        mean = pad_packed_sequence(states, True)[0].sum(1) / lengths[:, None]
        pooled = torch.cat([mean, pad_packed_sequence(states, True, -torch.inf)[0].amax(1)], 1)
    hidden = torch.relu(pooled @ weights["linear.weight"].T + weights["linear.bias"])
    results = hidden @ weights["output.weight"].T + weights["output.bias"]
    if head:
        added = torch.from_numpy(ngrams().outputs(found["rows"], found["values"]))
        results = head["lstm"] * results + head["ngrams"] * added
    if "classes" in scoring:
        return (results / (config.get("calibration") or {}).get("temperature", 1)).softmax(1).tolist()
    if "five-ratings" in scoring:
        return results.softmax(1)[:, scoring["five-ratings"]["positive_from"] - 1 :].sum(1).tolist()
    return (results[:, 0] - (scoring["rating"]["positive_from"] - 0.5 if "rating" in scoring else 0)).tolist()

def scores(texts, batch: int = 64):
    """The score of each text, or its list of probabilities; nan for a text without a result."""
    import torch
    found = [read(text) for text in texts]
    results = [float("nan")] * len(found)
    order = sorted((at for at, words in enumerate(found) if words), key=lambda at: len(found[at]))
    with torch.no_grad():
        for start in range(0, len(order), batch):
            places = order[start : start + batch]
            for place, result in zip(places, outputs([found[place] for place in places])):
                results[place] = result
    return results
