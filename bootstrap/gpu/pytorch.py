"""The same training as `trainer fit`, implemented in PyTorch on a GPU.

The model is torch.nn.Embedding, torch.nn.LSTM with cuDNN, and two torch.nn.Linear.

Uses the rows of the trainer's training split, sorted by length, in the same order of batches. The rows are on the device,
and preparing them is not timed. The loss is fetched once per epoch; fused Adam updates the weights. Prints one JSON object
per epoch to standard output, with its loss and reviews/s. Requires PyTorch only.

B rows of a batch, T tokens of its longest row, H the hidden size.
"""

import argparse
import contextlib
import json
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from order import order

TYPES = {"tokens": torch.int16, "lengths": torch.int32, "labels": torch.uint8, "split": torch.int16}


class Rows:
    """The rows whose split is at least `begin`, cut to `tokens_max`."""

    def __init__(self, folder: Path, begin: int, tokens_max: int, device: str) -> None:
        tokens, lengths, labels, split = (read(folder / name, kind) for name, kind in TYPES.items())
        begins = lengths.cumsum(0) - lengths
        wanted = split >= begin
        self.lengths = lengths[wanted].clamp(max=tokens_max)
        places = begins[wanted][:, None] + torch.arange(tokens_max)
        padded = tokens[places.clamp(max=len(tokens) - 1)]
        padded[torch.arange(tokens_max) >= self.lengths[:, None]] = 0
        self.tokens, self.labels = padded.to(device), labels[wanted].to(device)
        self.lengths_on_device = self.lengths.to(device)


def read(path: Path, kind: torch.dtype) -> torch.Tensor:
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=kind).to(torch.int64)


class Classifier(nn.Module):
    def __init__(self, n_ids: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_ids, 100, padding_idx=0)
        self.lstm = nn.LSTM(100, hidden, layers, batch_first=True)
        self.linear = nn.Linear(hidden, 32)
        self.output = nn.Linear(32, 1)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(tokens))  # [B, T, H]
        last = states[torch.arange(len(lengths), device=lengths.device), lengths - 1]  # [B, H]
        return self.output(self.linear(last).relu()).squeeze(1)  # [B]


def main() -> None:
    asked = arguments()
    torch.manual_seed(1)
    rows = Rows(Path(asked.folder), round(1000 * asked.test_fraction), asked.tokens, asked.device)
    model = Classifier(int(rows.tokens.max()) + 1, asked.layers, asked.hidden).to(asked.device)
    forward = torch.compile(model, dynamic=True) if asked.compile else model
    optimizer = torch.optim.Adam(model.parameters(), 0.001, fused=True)
    is_bf16 = asked.precision == "bf16"
    lower = torch.autocast(asked.device, torch.bfloat16) if is_bf16 else contextlib.nullcontext()
    for epoch in range(asked.epochs):
        # Not timed, because in Python this takes as long as an epoch on a fast GPU.
        batches = [
            (torch.tensor(batch, device=asked.device), int(rows.lengths[batch].max()))
            for batch in order(1, epoch, rows.lengths.tolist(), asked.batch)
        ]
        total = torch.zeros((), device=asked.device)
        begin = time.perf_counter()
        for own, longest in batches:
            optimizer.zero_grad()
            with lower:
                outputs = forward(rows.tokens[own, :longest], rows.lengths_on_device[own])
            loss = binary_cross_entropy_with_logits(outputs.float(), rows.labels[own].float())
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(own)
        loss = total.item() / len(rows.lengths)
        speed = len(rows.lengths) / (time.perf_counter() - begin)
        print(json.dumps({"epoch": epoch + 1, "loss": loss, "reviews_per_s": speed}), flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flag = parser.add_argument
    flag("folder")
    flag("--device", choices=["cpu", "cuda"], default="cuda")
    flag("--precision", choices=["f32", "bf16"], default="f32")
    flag("--compile", action="store_true")
    flag("--layers", type=int, default=2)
    flag("--hidden", type=int, default=32)
    flag("--batch", type=int, default=512)
    flag("--tokens", type=int, default=100)
    flag("--epochs", type=int, default=3)
    flag("--test-fraction", type=float, default=0.1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
