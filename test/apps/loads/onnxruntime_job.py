import numpy as np
import onnxruntime


def number(value):
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes([*data, value])


def field(key, value):
    """Encodes a field of ONNX's protobuf messages: a number, or bytes."""
    if isinstance(value, int):
        return number(key << 3) + number(value)
    value = value.encode() if isinstance(value, str) else value
    return number(key << 3 | 2) + number(len(value)) + value


def tensor(name, *shape):
    sizes = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, sizes)))


def node(kind, result, *given):
    return field(1, b"".join(field(1, name) for name in given) + field(2, result) + field(4, kind))


graph = (node("MatMul", "product", "a", "b") + node("Conv", "filtered", "images", "kernel") + node("Tanh", "bent", "filtered")
         + field(2, "graph") + field(11, tensor("a", 700, 600)) + field(11, tensor("b", 600, 513))
         + field(11, tensor("images", 8, 3, 32, 32)) + field(11, tensor("kernel", 32, 3, 3, 3))
         + field(12, tensor("product", 700, 513)) + field(12, tensor("bent", 8, 32, 30, 30)))
session = onnxruntime.InferenceSession(field(1, 9) + field(8, field(2, 17)) + field(7, graph), providers=["CPUExecutionProvider"])
draw = np.random.default_rng(0)
shapes = {"a": (700, 600), "b": (600, 513), "images": (8, 3, 32, 32), "kernel": (32, 3, 3, 3)}
given = {name: draw.random(shape).astype("f") for name, shape in shapes.items()}
first = session.run(None, given)
print("matmul", np.allclose(first[0], given["a"].astype("d") @ given["b"].astype("d"), rtol=1e-4))
open("gate").read()
print("again", all(all(map(np.array_equal, session.run(None, given), first)) for _ in range(300)))
