"""JSON lines of reviews on standard input -> CSV with the columns reviewText and overall on standard output. Line breaks in
texts become spaces: DuckDB's parallel reader refuses a file with line breaks in quotes.
"""

import csv
import json
import sys

out = csv.writer(open(sys.stdout.fileno(), "w", encoding="utf-8", newline="", closefd=False), lineterminator="\n")
out.writerow(["reviewText", "overall"])
for line in sys.stdin.buffer:
    review = json.loads(line)
    out.writerow([" ".join(review["reviewText"].splitlines()), review["overall"]])
