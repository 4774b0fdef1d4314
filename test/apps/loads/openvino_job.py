import numpy as np
import openvino as ov
from openvino import opset13 as ops

square = np.random.default_rng(0).random((512, 512)).astype("f")
given = ops.parameter([512, 512], np.float32)
model = ov.Model([ops.relu(ops.matmul(given, given, False, False))], [given])
compiled = ov.Core().compile_model(model, "CPU")
expected = square.astype("d") @ square.astype("d")
print("matmul", all(np.allclose(compiled([square])[0], expected, rtol=1e-2) for _ in range(300)))
open("gate").read()
print("again", np.allclose(compiled([square])[0], expected, rtol=1e-2))
