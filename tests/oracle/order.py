"""The order of an epoch of rows in memory, as crates/program/src/random.rs and crates/batches/src/order.rs
define it.

Reads {"seed": …, "epoch": …, "lengths": […], "batch_rows": …} from standard input and prints the batches. A
script that trains on the same batches can import this module.
"""

import json
import sys

STEP, MASK = 0x9E3779B97F4A7C15, 2**64 - 1


def mix(z):
    z = (z + STEP) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def shuffle(items, state):
    for last in range(len(items) - 1, 0, -1):
        while True:
            product, state = mix(state) * (last + 1), (state + STEP) & MASK
            if product & MASK >= 2**64 % (last + 1):
                break
        items[last], items[product >> 64] = items[product >> 64], items[last]
    return state


def order(seed, epoch, lengths, batch_rows):
    state = 0
    for part in (1, seed, epoch, 0):
        state = mix(state ^ part)
    rows = list(range(len(lengths)))
    state = shuffle(rows, state)
    whole = len(rows) // batch_rows * batch_rows
    pools = [rows[at : min(at + 64 * batch_rows, whole)] for at in range(0, whole, 64 * batch_rows)]
    pools = [sorted(pool, key=lengths.__getitem__) for pool in pools]
    batches = [pool[at : at + batch_rows] for pool in pools for at in range(0, len(pool), batch_rows)]
    shuffle(batches, state)
    return batches + ([sorted(rows[whole:], key=lengths.__getitem__)] if rows[whole:] else [])


if __name__ == "__main__":
    print(json.dumps(order(**json.load(sys.stdin))))
