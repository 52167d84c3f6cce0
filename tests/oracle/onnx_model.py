"""Checks a file of ONNX, and computes the texts of standard input with it. `predict.py` of the exported folder makes its
inputs.

usage: onnx_model.py MODEL.onnx FOLDER < TEXTS
"""

import json
import sys

import numpy
import onnx
import onnxruntime

path, folder = sys.argv[1:]
onnx.checker.check_model(path, full_check=True)
sys.path.insert(0, folder)
import predict  # noqa: E402

session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
assert json.loads(session.get_modelmeta().custom_metadata_map["labels"])
names = [output.name for output in session.get_outputs()]
texts = sys.stdin.buffer.read().decode("utf-8", predict.invalid).split("\n")[:-1]
for start in range(0, len(texts), 64):
    found = session.run(names, predict.inputs(texts[start : start + 64]))
    for values in zip(*found):
        row = {name: None if numpy.isnan(value).any() else value.tolist() for name, value in zip(names, values)}
        print(json.dumps(row))
