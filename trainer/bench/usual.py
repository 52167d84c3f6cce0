"""The same training in PyTorch as most people write it: a DataLoader, every row padded to the cap, plain Adam.

usage: usual.py DATASET [EPOCHS]
Prints one JSON object per epoch, with its reviews/s.
"""

import json
import sys
import time

import h5py
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CAP = 100


class Reviews(Dataset):
    def __init__(self, path):
        file = h5py.File(path)
        self.offsets, self.tokens, self.labels = file["offsets"][:], file["tokens"][:], file["label"][:]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, row):
        tokens = self.tokens[int(self.offsets[row]) : int(self.offsets[row + 1])][:CAP].astype("int64")
        padded = torch.zeros(CAP, dtype=torch.long)
        padded[: len(tokens)] = torch.from_numpy(tokens)
        return padded, len(tokens), float(self.labels[row])


class Classifier(nn.Module):
    def __init__(self, ids):
        super().__init__()
        self.embedding = nn.Embedding(ids, 100, padding_idx=0)
        self.lstm = nn.LSTM(100, 32, 2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, tokens, lengths):
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(states[torch.arange(len(lengths)), lengths - 1]).squeeze(1)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    reviews = Reviews(sys.argv[1])
    model = Classifier(len(h5py.File(sys.argv[1])["vocabulary/offsets"]) + 1)
    optimizer = torch.optim.Adam(model.parameters())
    loss_of = nn.BCEWithLogitsLoss()
    for epoch in range(int(sys.argv[2]) if len(sys.argv) > 2 else 2):
        begin, total = time.perf_counter(), 0.0
        for tokens, lengths, labels in DataLoader(reviews, batch_size=512, shuffle=True):
            optimizer.zero_grad()
            loss = loss_of(model(tokens, lengths), labels.float())
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        speed = len(reviews) / (time.perf_counter() - begin)
        print(json.dumps({"epoch": epoch + 1, "loss": total / len(reviews), "reviews_per_s": speed}), flush=True)


main()
