# SPDX-License-Identifier: MIT
# The test cases of the ONNX project, as its Python package brings or makes them, run by
# tandem-graph test: prints how many of each kind passed, failed and were refused, and why. A case
# that fails, fewer node tests than before, or no answer at all, is an error. The light networks
# have no inputs of their own: they get the ones that the project's runner makes. Needs: onnx; numpy
# before 2, whose Fourier transform of float32 is one of float64 (the other leaves 2e-7 where a sum
# is 0).
#
# usage: onnx_cases.py TANDEM_GRAPH [--reasons]
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

NODE_TESTS = 1790  # that must pass at least


def write_value(path, value, info):
    kind = info.type.WhichOneof("value")
    if hasattr(value, "SerializeToString"):
        message = value
    elif kind == "sequence_type":
        message = numpy_helper.from_list(list(value or []), info.name)
    elif kind == "optional_type":
        message = numpy_helper.from_optional(value, info.name)
    else:
        message = numpy_helper.from_array(np.asarray(value), info.name)
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def lay_out_nodes(folder):
    """The package makes these cases; it does not bring them as files."""
    for case in collect_testcases(""):
        place = os.path.join(folder, case.name)
        graph = case.model.graph
        os.makedirs(place)
        onnx.save(case.model, os.path.join(place, "model.onnx"))
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = os.path.join(place, f"test_data_set_{i}")
            os.makedirs(data)
            for kind, values, infos in (("input", inputs, graph.input),
                                        ("output", outputs, graph.output)):
                for k, value in enumerate(values):
                    write_value(os.path.join(data, f"{kind}_{k}.pb"), value, infos[k])


def lay_out_light(source, folder):
    for path in glob.glob(os.path.join(source, "light_*.onnx")):
        model = onnx.load(path)
        case = os.path.join(folder, os.path.basename(path)[:-5])
        data = os.path.join(case, "test_data_set_0")
        os.makedirs(data)
        shutil.copy(path, os.path.join(case, "model.onnx"))
        weights = {weight.name for weight in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in weights]
        for i, value in enumerate(inputs):
            shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
            n = int(np.prod(shape))
            array = (np.arange(n).reshape(shape) / n).astype(np.float32)
            with open(os.path.join(data, f"input_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(array).SerializeToString())
        for output in glob.glob(path[:-5] + "_output_*.pb"):
            shutil.copy(output, os.path.join(data, os.path.basename(output)[-11:]))


def judge(program, name, folder, shows_reasons):
    done = subprocess.run([program, "test", folder, "--json", "--table", "none"],
                          capture_output=True, text=True)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        print(f"{name}: ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
        return False
    print(f"{name}: {result['passed']} passed, {result['failed']} failed, "
          f"{result['refused']} refused", flush=True)
    reasons = collections.Counter()
    for case in result["cases"]:
        if case["status"] == "failed":
            print(f"  FAILED {case['name']}: {case['reason']}")
        elif case["status"] == "refused":
            operator = re.match(r"[\w.]+(?= of opset)", case["reason"])
            reasons[operator.group(0) if operator else "other"] += 1
            if shows_reasons:
                print(f"  refused {case['name']}: {case['reason']}")
    if reasons:
        print("  refused: " + ", ".join(f"{k} {n}" for k, n in sorted(reasons.items())))
    is_enough = name != "node" or result["passed"] >= NODE_TESTS
    return result["failed"] == 0 and is_enough


def main():
    program = os.path.abspath(sys.argv[1])
    shows_reasons = "--reasons" in sys.argv
    source = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        nodes = os.path.join(folder, "node")
        light = os.path.join(folder, "light")
        lay_out_nodes(nodes)
        lay_out_light(os.path.join(source, "light"), light)
        is_good &= judge(program, "node", nodes, shows_reasons)
        for name in ("simple", "pytorch-converted", "pytorch-operator"):
            is_good &= judge(program, name, os.path.join(source, name), shows_reasons)
        is_good &= judge(program, "light", light, shows_reasons)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
