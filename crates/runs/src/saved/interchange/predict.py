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
raw = bytearray((folder / "model.safetensors").read_bytes())
kinds, begin = {"F32": torch.float32, "F64": torch.float64}, 8 + int.from_bytes(raw[:8], "little")
weights = {name: torch.frombuffer(raw[begin + at["data_offsets"][0] : begin + at["data_offsets"][1]], dtype=kinds[at["dtype"]])
           .view(at["shape"]) for name, at in json.loads(raw[8:begin]).items() if name != "__metadata__"}
lstm = torch.nn.LSTM(sizes["embedding"], sizes["hidden"], sizes["layers"],
                     bidirectional=sizes["bidirectional"], dtype=weights["embedding.weight"].dtype)
lstm.load_state_dict({name[5:]: weight for name, weight in weights.items() if name.startswith("lstm.")})

def check(text: str):
    """Refuses a text that the mapper would change: it has lower-case letters with their marks, ' inside words, single spaces."""
    before = " "
    for at, (here, after) in enumerate(zip(text, text[1:] + " "), start=1):
        kind = unicodedata.category(here)
        if here in " '":
            is_cleaned = before != " " and (here == "'" and after != " " or here == " " and at < len(text))
        elif kind[0] == "M":
            is_cleaned = unicodedata.category(before)[0] in "LMC"
        else:  # The tables of this Python may lack a letter of Unicode 17.
            is_cleaned = kind[0] == "L" and here == here.lower() or kind == "Cn"
        if not is_cleaned:
            name = unicodedata.name(here, f"U+{ord(here):04X}").lower()
            raise ValueError(f"found {here!r} ({name}) at character {at}, expected a cleaned text: lower-case letters, ' inside "
                             "words, single spaces; clean it with `mapper` (its output before the tab), or use `trainer predict`")
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
