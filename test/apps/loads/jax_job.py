import jax
import jax.numpy as jnp
import numpy as np

square = np.random.default_rng(0).random((700, 700)).astype("f")
a = jnp.asarray(square)
multiply = jax.jit(lambda left, right: left @ right)
expected = square.astype("d") @ square.astype("d")
print("matmul", all(np.allclose(np.asarray(multiply(a, a)), expected, rtol=1e-4) for _ in range(300)))
open("gate").read()
slope = jax.jit(jax.grad(lambda weights: jnp.mean(jnp.tanh(a @ weights) ** 2)))
weights = a * 0.01
for _ in range(50):
    weights = weights - 0.1 * slope(weights)
print("training", bool(np.isfinite(np.asarray(weights)).all()))
