"""The same training in PyTorch: torch.nn.Embedding, torch.nn.LSTM and two torch.nn.Linear on the same dataset.

`trainer fit` is compared with this script, which shares no code with it: h5py reads the rows, tests/oracle/order.py orders
them, and the initial weights come from a model.safetensors, a .vec text or PyTorch's initialisation. The flags are those
of `trainer fit`; the defaults are two layers of 32, the last state, Adam at a constant rate, no dropout and no validation.
Under torchrun, its processes train together with DistributedDataParallel over Gloo, each on its share of every batch.
Prints one JSON object per line: with --log-steps, in a single process, the loss of each step; the loss and reviews/s of
each epoch; and at the end the metrics of the test split. With --logits: the logit of each row of the dataset, in order.

B rows of a batch, T tokens of its longest row, E the embedding dimension, H the hidden size.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import torch
from torch import distributed, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "oracle"))
from order import order  # noqa: E402

UNKNOWN = 1
FIRST_WORD = 2
SAFETENSORS_TYPES = {"F32": "<f4", "F64": "<f8"}
RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def main() -> None:
    asked = arguments()
    torch.set_default_dtype(torch.float64 if asked.precision == "f64" else torch.float32)
    torch.manual_seed(asked.seed)
    file = h5py.File(asked.dataset)
    model = Classifier(len(file["vocabulary/offsets"]) + 1, asked)
    if asked.init_from and Path(asked.init_from).suffix == ".vec":
        read_vectors(asked.init_from, model.embedding.weight, words(file))
    elif asked.init_from:
        model.load_state_dict(read_safetensors(asked.init_from))
    if asked.logits:
        for logit in logits(model, Rows(file, asked.tokens), asked.batch).tolist():
            say(logit)
        return

    test_splits = 0 if asked.test else round(1000 * asked.test_fraction)
    validation_splits = test_splits + round(1000 * asked.validation_fraction)
    training = Rows(file, asked.tokens, validation_splits, 1000)
    validation = Rows(file, asked.tokens, test_splits, validation_splits)
    test = Rows(h5py.File(asked.test), asked.tokens) if asked.test else Rows(file, asked.tokens, 0, test_splits)
    if RANKS > 1:
        if asked.log_steps:
            sys.exit("--log-steps: found several processes, expected one")
        if 0 < len(training) % asked.batch < RANKS:
            sys.exit("the last batch has fewer rows than there are processes; choose another --batch")
        distributed.init_process_group("gloo")
    fit(model, training, validation, asked)
    if len(test) and RANK == 0:
        say({"event": "test", "metrics": evaluate(model, test, asked.batch)})
    if RANKS > 1:
        distributed.destroy_process_group()


class Rows:
    """The rows whose split is at least `begin` and below `end`, each cut to the tokens that are read."""

    def __init__(self, file: h5py.File, tokens_max: int, begin: int = 0, end: int = 1000) -> None:
        split = file["split"][:]
        rows = np.flatnonzero((split >= begin) & (split < end))
        offsets = file["offsets"][:].astype(np.int64)
        lengths = np.diff(offsets)[rows]
        self.lengths = torch.from_numpy(np.minimum(lengths, tokens_max) if tokens_max else lengths)
        self.labels = torch.from_numpy(file["label"][:][rows].astype(np.int64))
        self.tokens = torch.zeros(len(rows), int(self.lengths.max()) if len(rows) else 0, dtype=torch.int64)
        tokens = torch.from_numpy(file["tokens"][:].astype(np.int64))
        for row, (begin, length) in enumerate(zip(offsets[:-1][rows].tolist(), self.lengths.tolist())):
            self.tokens[row, :length] = tokens[begin : begin + length]

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns tokens [B, T], lengths [B], labels [B]."""
        lengths = self.lengths[rows]
        return self.tokens[rows, : int(lengths.max())], lengths, self.labels[rows]


class Classifier(nn.Module):
    """Embedding, LSTM, pooling, linear, ReLU, output; its state dict has the names of a model.safetensors."""

    def __init__(self, ids: int, asked: argparse.Namespace) -> None:
        super().__init__()
        between = asked.dropout_layers if asked.layers > 1 else 0.0
        self.embedding = nn.Embedding(ids, asked.embedding, padding_idx=0)
        self.lstm = nn.LSTM(asked.embedding, asked.hidden, asked.layers, batch_first=True, dropout=between)
        self.linear = nn.Linear(asked.hidden * (2 if asked.pool == "mean-max" else 1), asked.linear)
        self.output = nn.Linear(asked.linear, 1)
        self.dropout_words = asked.dropout_words
        self.drop_embedding = nn.Dropout(asked.dropout_embedding)
        self.drop_head = nn.Dropout(asked.dropout_head)
        self.pool = asked.pool

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        if self.training and self.dropout_words:
            tokens = tokens.masked_fill(torch.rand(tokens.shape) < self.dropout_words, UNKNOWN)
        states, _ = self.lstm(self.drop_embedding(self.embedding(tokens)))  # [B, T, H]
        if self.pool == "last":
            pooled = states[torch.arange(len(lengths)), lengths - 1]  # [B, H]
        else:
            is_padding = (torch.arange(states.shape[1]) >= lengths[:, None])[:, :, None]  # [B, T, 1]
            mean = states.masked_fill(is_padding, 0.0).sum(1) / lengths[:, None]
            pooled = torch.cat([mean, states.masked_fill(is_padding, -math.inf).amax(1)], 1)  # [B, 2H]
        return self.output(self.drop_head(self.linear(pooled).relu())).squeeze(1)  # [B]


def fit(model: Classifier, training: Rows, validation: Rows, asked: argparse.Namespace) -> None:
    optimizer = optimizer_of(model, asked)
    forward = DistributedDataParallel(model, gradient_as_bucket_view=True) if RANKS > 1 else model
    steps_of_epoch = -(-len(training) // asked.batch)
    lengths = training.lengths.tolist()
    step = 0
    for epoch in range(asked.epochs):
        batches = [torch.tensor(rows) for rows in order(asked.seed, epoch, lengths, asked.batch)]
        model.train()
        epoch_loss, begin = 0.0, time.perf_counter()
        for rows in batches:
            # Rows of a batch are ordered by length, so that shares take the same time.
            own = rows[RANK::RANKS]
            tokens, lengths_of_batch, labels = training.batch(own)
            optimizer.param_groups[0]["lr"] = rate(step, steps_of_epoch * asked.epochs, asked)
            optimizer.zero_grad()
            outputs = forward(tokens, lengths_of_batch)
            loss = binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype))
            # DistributedDataParallel averages the gradients of ranks.
            (loss * (len(own) * RANKS / len(rows)) if RANKS > 1 else loss).backward()
            if asked.clip:
                nn.utils.clip_grad_norm_(model.parameters(), asked.clip)
            optimizer.step()
            step += 1
            epoch_loss += loss.item() * len(own)
            if asked.log_steps and step % asked.log_steps == 0:
                say({"event": "steps", "epoch": epoch + 1, "step": step, "loss": loss.item()})
            if step == asked.steps:
                return
        seconds = time.perf_counter() - begin
        if RANKS > 1:
            sums = torch.tensor([epoch_loss], dtype=torch.float64)
            distributed.all_reduce(sums)
            epoch_loss = sums.item()
        line = {
            "event": "epoch",
            "epoch": epoch + 1,
            "loss": epoch_loss / len(training),
            "reviews_per_s": len(training) / seconds,
        }
        say(line | ({"validation": evaluate(model, validation, asked.batch)} if len(validation) else {}))


def optimizer_of(model: Classifier, asked: argparse.Namespace) -> torch.optim.Optimizer:
    weights = model.parameters()
    if asked.optimizer == "sgd":
        return torch.optim.SGD(weights, asked.rate, momentum=asked.momentum, weight_decay=asked.weight_decay)
    kind = torch.optim.Adam if asked.optimizer == "adam" else torch.optim.AdamW
    return kind(weights, asked.rate, weight_decay=asked.weight_decay, fused=asked.fused or None)


def rate(step: int, end_step: int, asked: argparse.Namespace) -> float:
    """The formulas of crates/runs/src/recipe/schedule.rs."""
    full = asked.rate * asked.batch / (asked.base_batch or asked.batch)
    if step < asked.warm_up:
        start = min(asked.rate, full)
        return start + (full - start) * step / asked.warm_up
    progress = (step - asked.warm_up) / (end_step - asked.warm_up)
    factors = {"constant": 1.0, "linear": 1.0 - progress, "cosine": 0.5 * (1.0 + math.cos(math.pi * progress))}
    return full * factors[asked.decay]


def evaluate(model: Classifier, rows: Rows, batch_rows: int) -> dict:
    found = logits(model, rows, batch_rows)
    loss = binary_cross_entropy_with_logits(found, rows.labels.to(found.dtype)).item()
    accuracy = ((found > 0) == (rows.labels == 1)).double().mean().item()
    return {"loss": loss, "accuracy": accuracy, "rows": len(rows)}


def logits(model: Classifier, rows: Rows, batch_rows: int) -> torch.Tensor:
    """Returns the logit of each row, [N]."""
    model.eval()
    found = torch.empty(len(rows))
    with torch.no_grad():
        for batch in torch.argsort(rows.lengths).split(batch_rows):
            tokens, lengths, _ = rows.batch(batch)
            found[batch] = model(tokens, lengths)
    return found


def read_safetensors(path: str) -> dict[str, torch.Tensor]:
    """Reads eight bytes with the length of a JSON header, the header, and the values of all tensors."""
    content = Path(path).read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, tensor in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            start, end = (begin + offset for offset in tensor["data_offsets"])
            numbers = np.frombuffer(content[start:end], SAFETENSORS_TYPES[tensor["dtype"]])
            tensors[name] = torch.from_numpy(numbers.reshape(tensor["shape"]).copy())
    return tensors


def words(file: h5py.File) -> list[bytes]:
    """Returns the vocabulary; the first word has the id FIRST_WORD."""
    content, offsets = file["vocabulary/bytes"][:].tobytes(), file["vocabulary/offsets"][:].tolist()
    return [content[begin:end] for begin, end in zip(offsets, offsets[1:])]


def read_vectors(path: str, embedding: torch.Tensor, vocabulary: list[bytes]) -> None:
    """Puts each word's vector into its row of `embedding`; the first line of the file contains counts."""
    ids = {word: id for id, word in enumerate(vocabulary, FIRST_WORD)}
    with open(path, "rb") as file, torch.no_grad():
        for line in list(file)[1:]:
            word, *numbers = line.split(b" ")
            if word in ids:
                embedding[ids[word]] = torch.tensor([float(number) for number in numbers])


def say(line: object) -> None:
    if RANK == 0:
        print(json.dumps(line), flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flag = parser.add_argument
    flag("dataset")
    flag("--test", help="train on all rows of DATASET and test on all of this one")
    flag("--test-fraction", type=float, default=0.1)
    flag("--validation-fraction", type=float, default=0.0)
    flag("--tokens", type=int, default=100)
    flag("--embedding", type=int, default=100)
    flag("--hidden", type=int, default=32)
    flag("--layers", type=int, default=2)
    flag("--linear", type=int, default=32)
    flag("--pool", choices=["last", "mean-max"], default="last")
    flag("--init-from", help="weights to begin with: a model.safetensors, or word vectors in .vec text")
    flag("--epochs", type=int, default=5)
    flag("--batch", type=int, default=512)
    flag("--optimizer", choices=["sgd", "adam", "adamw"], default="adam")
    flag("--rate", type=float, default=0.001)
    flag("--base-batch", type=int)
    flag("--warm-up", type=int, default=0)
    flag("--decay", choices=["constant", "linear", "cosine"], default="constant")
    flag("--momentum", type=float, default=0.9)
    flag("--weight-decay", type=float, default=0.0)
    flag("--clip", type=float)
    flag("--dropout-words", type=float, default=0.0)
    flag("--dropout-embedding", type=float, default=0.0)
    flag("--dropout-layers", type=float, default=0.0)
    flag("--dropout-head", type=float, default=0.0)
    flag("--precision", choices=["f32", "f64"], default="f32")
    flag("--seed", type=int, default=1)
    flag("--steps", type=int, help="end after so many steps")
    flag("--log-steps", type=int, help="print the loss every so many steps")
    flag("--fused", action="store_true", help="Adam's update in one pass over each tensor")
    flag("--logits", action="store_true", help="only print the logit of each row")
    return parser.parse_args()


main()
