"""Prints the outcome of each raw line, or of each element of its list: one JSON list per line, `[entry in the ledger, cleaned text, rating]`.

The text and the rating are null if the line is bad. The whole list is null if a character is newer than this
Python. Takes the options of expect.py.
"""

from __future__ import annotations

import argparse
import json

import expect
import spec


def main() -> None:
    parser = argparse.ArgumentParser(description="What becomes of each raw line.")
    expect.add_input_arguments(parser)
    options = parser.parse_args()
    fields = expect.fields_of(options)
    for line in expect.lines_of(options.raw):
        for reason, text, rating, is_decided in spec.judge_all(line, fields):
            print(json.dumps([reason, text, rating] if is_decided else None))


if __name__ == "__main__":
    main()
