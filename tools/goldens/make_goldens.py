#!/usr/bin/env python3
"""Makes tests/goldens/*.safetensors: five training steps as PyTorch computes them. Run with the Python that
bench/vs_pytorch sets up:

    ~/.cache/stoker/torch-2.15/bin/python tools/goldens/make_goldens.py

Every step has a batch of its own; the loss is the mean softmax-cross-entropy; batch norm has PyTorch's defaults (eps
1e-5, momentum 0.1). All is computed in float64 and stored rounded to float32, so that a test's tolerance is for our
rounding alone; "float32_deviation" in the metadata is what PyTorch's own float32 run differs by (largest absolute
difference of a final value).

Names and layouts are PyTorch's (OIHW, NCHW). A file has:

    labels          i64 [5, batch]
    losses          f32 [5]: each step's loss, before that step's update
    logits          f32 [batch, classes]: the first step's output
    initial/NAME    the first three values of the parameter, flat, to check the formula with
    final/NAME      parameters and running statistics after five steps: every stride-th element of the flat tensor,
                    starting with the first; "stride" is in the metadata (1: all of it)

and, in the metadata, net, batch, optimizer (JSON), stride, float32_deviation, torch. The inputs f32 [5, batch, ...],
bounds 1, and the initial weights are not stored but given by a formula: element i of the tensor called NAME is

    bound * (2 * (h >> 8) * 2^-24 - 1)    in float32, with h = mix(fnv1a32(NAME) + i), all modulo 2^32, and
    mix(x): x ^= x >> 16; x *= 0x7feb352d; x ^= x >> 15; x *= 0x846ca68b; x ^= x >> 16

with NAME "input" for the inputs, and bound float32(1 / sqrt(fan-in)) for weights and biases of linear and convolution
layers. Batch norm starts with weight 1 + element and bias element, bound 0.25; running mean 0 and variance 1.

The nets:
    mlp       fc1 784->256, relu, fc2 256->128, relu, fc3 128->16; batch 8
    lenet5    conv1 5x5 1->20, max2, conv2 5x5 20->50, max2, fc1 800->500, relu, fc2 500->10; batch 4
    residual  input 3x8x8, 4 classes, batch 4:
              stem.0 conv 3x3 3->8 pad 1, stem.1 batch norm, relu6;
              block.0.0 conv 1x1 8->16, block.0.1 batch norm, relu6; block.1.0 depthwise 3x3 pad 1, block.1.1 batch
              norm, relu6; block.2 conv 1x1 16->8, block.3 batch norm; + the block's input;
              global average pool; fc 8->4. Only fc has a bias.
"""
import json
import pathlib
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

STEPS = 5
OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "goldens"


def elements(name, count):
    """Uniform in [-1, 1), float32, by the formula above."""
    seed = 0x811C9DC5
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x01000193) & 0xFFFFFFFF
    x = (np.arange(count, dtype=np.uint64) + seed).astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)


def initialise(net):
    for name, module in net.named_modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            bound = np.float32(1 / np.sqrt(module.weight[0].numel()))
        elif isinstance(module, nn.BatchNorm2d):
            bound = np.float32(0.25)
        else:
            continue
        for kind, parameter in module.named_parameters():
            values = elements(f"{name}.{kind}", parameter.numel()) * bound
            if isinstance(module, nn.BatchNorm2d) and kind == "weight":
                values = values + np.float32(1)
            parameter.data.copy_(torch.from_numpy(values.reshape(parameter.shape)))


class Mlp(nn.Module):
    shape, classes, batch, stride = (784,), 16, 8, 11

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 256), nn.Linear(256, 128), nn.Linear(128, 16)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class LeNet5(nn.Module):
    shape, classes, batch, stride = (1, 28, 28), 10, 4, 11

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(self.conv2(F.max_pool2d(self.conv1(x), 2)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class Residual(nn.Module):
    shape, classes, batch, stride = (3, 8, 8), 4, 4, 1

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.block = nn.Sequential(
            nn.Sequential(nn.Conv2d(8, 16, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6()),
            nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), nn.BatchNorm2d(16), nn.ReLU6()),
            nn.Conv2d(16, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem(x)
        return self.fc((x + self.block(x)).mean((2, 3)))


NETS = {"mlp": Mlp, "lenet5": LeNet5, "residual": Residual}
# file: (net, optimizer, its options)
CASES = {
    "mlp_sgd": ("mlp", "SGD", {"lr": 0.1, "momentum": 0.9}),
    "lenet5_sgd": ("lenet5", "SGD", {"lr": 0.05, "momentum": 0.9}),
    "residual_sgd": ("residual", "SGD", {"lr": 0.1, "momentum": 0.9}),
    "residual_nesterov": ("residual", "SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "residual_adam": ("residual", "Adam", {"lr": 0.01, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}),
    "residual_adamw": ("residual", "AdamW", {"lr": 0.01, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1}),
    "residual_rmsprop": ("residual", "RMSprop", {"lr": 0.003, "alpha": 0.99, "eps": 1e-8, "momentum": 0.9}),
}


def labels_of(net):
    steps, items = np.meshgrid(np.arange(STEPS), np.arange(net.batch), indexing="ij")
    return torch.from_numpy((3 * steps + 5 * items + 1) % net.classes)


def train(net_name, optimizer_name, options, dtype):
    net = NETS[net_name]()
    initialise(net)
    initial = {name: p.detach().clone() for name, p in net.named_parameters()}
    net.to(dtype)
    shape = (STEPS, net.batch) + net.shape
    inputs = torch.from_numpy(elements("input", int(np.prod(shape))).reshape(shape)).to(dtype)
    labels = labels_of(net)
    optimizer = getattr(torch.optim, optimizer_name)(net.parameters(), **options)
    losses, logits = [], None
    for step in range(STEPS):
        optimizer.zero_grad()
        output = net(inputs[step])
        loss = F.cross_entropy(output, labels[step])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        logits = output.detach() if step == 0 else logits
    final = {name: value for name, value in net.state_dict().items() if not name.endswith("num_batches_tracked")}
    return net, initial, labels, losses, logits, final


def write_safetensors(path, tensors, metadata):
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name, array in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        kind = {"float32": "F32", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    OUT.mkdir(parents=True, exist_ok=True)
    for case, (net_name, optimizer, options) in CASES.items():
        net, initial, labels, losses, logits, final = train(net_name, optimizer, options, torch.float64)
        single = train(net_name, optimizer, options, torch.float32)[5]
        deviation = max((final[name] - single[name].double()).abs().max().item() for name in final)
        tensors = {
            "labels": labels.numpy().astype(np.int64),
            "losses": np.array(losses, dtype=np.float32),
            "logits": logits.numpy().astype(np.float32),
        }
        for name, value in initial.items():
            tensors[f"initial/{name}"] = value.flatten()[:3].numpy()
        for name, value in final.items():
            tensors[f"final/{name}"] = value.flatten()[::net.stride].numpy().astype(np.float32)
        moved = max((final[name] - value.double()).abs().max().item() for name, value in initial.items())
        metadata = {"net": net_name, "batch": str(net.batch), "optimizer": json.dumps({"name": optimizer, **options}),
                    "stride": str(net.stride), "float32_deviation": f"{deviation:.3g}",
                    "torch": torch.__version__.split("+")[0]}
        path = OUT / f"{case}.safetensors"
        write_safetensors(path, tensors, metadata)
        print(f"{path.name}: {path.stat().st_size} bytes, losses {[round(loss, 6) for loss in losses]}, "
              f"float32 deviation {deviation:.2g}, largest change of a parameter {moved:.2g}")


if __name__ == "__main__":
    main()
