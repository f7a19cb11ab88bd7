"""The benchmark nets as PyTorch modules, parameter for parameter those of src/nn/ (names as in torchvision)."""
import torch
from torch import nn


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 16))


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(800, 500)
        self.fc2 = nn.Linear(500, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x), 2)
        x = nn.functional.max_pool2d(self.conv2(x), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def conv_bn(inputs, outputs, kernel, stride=1, groups=1):
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs)]


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        layers = []
        if expand != 1:
            layers.append(nn.Sequential(*conv_bn(inputs, hidden, 1), nn.ReLU6(inplace=True)))
        layers.append(nn.Sequential(*conv_bn(hidden, hidden, 3, stride, hidden), nn.ReLU6(inplace=True)))
        layers.extend(conv_bn(hidden, outputs, 1))
        self.conv = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    """Width 1.0 for 32x32: stride 1 in the stem and in the 24-channel stage, no dropout, 10 classes."""

    def __init__(self):
        super().__init__()
        features = [nn.Sequential(*conv_bn(3, 32, 3), nn.ReLU6(inplace=True))]
        inputs = 32
        for expand, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2),
                                               (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(count):
                features.append(InvertedResidual(inputs, outputs, stride if i == 0 else 1, expand))
                inputs = outputs
        features.append(nn.Sequential(*conv_bn(320, 1280, 1), nn.ReLU6(inplace=True)))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Identity(), nn.Linear(1280, 10))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = conv_bn(inputs, outputs, 3, stride)
        self.conv2, self.bn2 = conv_bn(outputs, outputs, 3)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(*conv_bn(inputs, outputs, 1, stride))

    def forward(self, x):
        y = torch.relu_(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu_(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """For 32x32: a 3x3 stem and no max-pool, 10 classes."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = conv_bn(3, 64, 3)
        inputs = 64
        for number, (outputs, stride) in enumerate(((64, 1), (128, 2), (256, 2), (512, 2)), 1):
            blocks = nn.Sequential(BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1))
            setattr(self, f"layer{number}", blocks)
            inputs = outputs
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = torch.relu_(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


# name: (module, shape of one item, classes, parameters)
NETS = {
    "mlp": (mlp, (784,), 16, 235_920),
    "lenet5": (LeNet5, (1, 28, 28), 10, 431_080),
    "mobilenetv2-32": (MobileNetV2, (3, 32, 32), 10, 2_236_682),
    "resnet18-32": (ResNet18, (3, 32, 32), 10, 11_173_962),
}


def make(name):
    module, shape, classes, parameters = NETS[name]
    net = module()
    count = sum(p.numel() for p in net.parameters())
    assert count == parameters, f"{name}: {count} parameters, expected {parameters}"
    return net, shape, classes


def step_flops(net, shape, batch):
    """2 flops a multiply-add, forward and two gradients; the first layer needs no input gradient."""
    macs = []

    def count(module, inputs, output):
        weight = module.weight
        per_output = weight[0].numel()
        macs.append(output[0].numel() * per_output)

    hooks = [m.register_forward_hook(count) for m in net.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    net.eval()
    with torch.no_grad():
        net(torch.zeros((1,) + shape))
    net.train()
    for hook in hooks:
        hook.remove()
    return batch * 2 * (3 * sum(macs) - macs[0])
