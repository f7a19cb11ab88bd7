#!/usr/bin/env python3
"""Times PyTorch's training step (forward, backward, SGD with momentum, fp32) of one net and prints one line of JSON.

    pytorch_step.py NET --batch N --threads N --steps N [--channels-last] [--fused]
"""
import argparse
import json
import resource
import statistics
import time

import torch

IMPORTED = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

import pytorch_nets  # noqa: E402  (after the measurement of the bare import)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("net", choices=pytorch_nets.NETS)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--fused", action="store_true", help="SGD with fused=True")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)

    net, shape, classes = pytorch_nets.make(arguments.net)
    flops = pytorch_nets.step_flops(net, shape, arguments.batch)
    inputs = torch.randn((arguments.batch,) + shape)
    labels = torch.randint(classes, (arguments.batch,))
    if arguments.channels_last and len(shape) == 3:
        net = net.to(memory_format=torch.channels_last)
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=arguments.fused or None)
    loss_function = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(net(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(max(2, arguments.steps // 10)):
        step()
    times = []
    for _ in range(arguments.steps):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    times.sort()
    print(json.dumps({
        "model": arguments.net,
        "torch": torch.__version__,
        "step_ms": {"median": statistics.median(times), "min": times[0], "p90": times[int(0.9 * (len(times) - 1))]},
        "step_flops": flops,
        "import_bytes": IMPORTED,
        "growth_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - IMPORTED,
    }))


if __name__ == "__main__":
    main()
