"""A convolutional network of flax, trained on random images of MNIST's size: `python flax_mnist.py [STEPS]`."""

import sys

import flax.linen as nn
import jax
import optax
from flax.training.train_state import TrainState

BATCH = 32


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, (3, 3))(x))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(64)(x.reshape(x.shape[0], -1)))
        return nn.Dense(10)(x)


@jax.jit
def train_step(state, images, labels):
    def loss_of(params):
        logits = state.apply_fn({"params": params}, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), loss


def main(steps):
    image_key, label_key, init_key = jax.random.split(jax.random.key(0), 3)
    images = jax.random.uniform(image_key, (BATCH, 28, 28, 1))
    labels = jax.random.randint(label_key, (BATCH,), 0, 10)
    network = Network()
    params = network.init(init_key, images)["params"]
    state = TrainState.create(apply_fn=network.apply, params=params, tx=optax.sgd(0.1, momentum=0.9))
    for _ in range(steps):
        state, loss = train_step(state, images, labels)
    print(f"loss after {steps} steps: {float(loss):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
