import numpy as np
import tensorflow as tf

draw = np.random.default_rng(0)
square = draw.random((600, 600)).astype("f")
a = tf.constant(square)
expected = square.astype("d") @ square.astype("d")
for _ in range(400):
    product = tf.matmul(a, a)
print("matmul", np.allclose(product.numpy(), expected, rtol=1e-4))
images = tf.constant(draw.random((8, 64, 64, 16)).astype("f"))
kernel = tf.constant(draw.random((3, 3, 16, 32)).astype("f"))
first = tf.nn.conv2d(images, kernel, 1, "SAME").numpy()
open("gate").read()
print("conv2d", all(np.allclose(tf.nn.conv2d(images, kernel, 1, "SAME").numpy(), first) for _ in range(100)))
model = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(10)])
model.compile("adam", "mse")
losses = model.fit(draw.random((2000, 512)), draw.random((2000, 10)), epochs=3, verbose=0).history["loss"]
print("training", losses[-1] < losses[0])
