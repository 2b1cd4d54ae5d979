"""Train a 64-128-64-10 MLP on 1,797 scans of handwritten digits: `python examples/train_mlp.py`.

Replace the first import by `import torch` and the loader's tensors by your own data, and this is a PyTorch script.
"""

import jitgrad as torch
from jitgrad import nn
from jitgrad.cli.digits import split_digits
from jitgrad.optim import Adam
from jitgrad.optim.lr_scheduler import OneCycleLR
from jitgrad.utils.data import DataLoader, TensorDataset

EPOCHS, BATCH, RATE = 30, 64, 5e-3


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    torch.manual_seed(0)
    train, test = split_digits(held_out=0.2)
    images, labels = torch.from_numpy(train.images), torch.from_numpy(train.labels)
    held_out = torch.from_numpy(test.images), torch.from_numpy(test.labels)

    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    loader = DataLoader(TensorDataset(images, labels), batch_size=BATCH, shuffle=True)
    optimizer = Adam(model.parameters(), lr=RATE)
    schedule = OneCycleLR(optimizer, max_lr=RATE, total_steps=EPOCHS * len(loader))

    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            noisy = x + 0.3 * torch.randn_like(x)  # so that 1,438 scans are not learnt by heart
            loss = nn.functional.cross_entropy(model(noisy), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        if epoch % 5 == 0:
            right = accuracy(model, *held_out)
            print(f"epoch {epoch:2}  loss {total / len(loader):.4f}  held-out accuracy {right:.2%}")


if __name__ == "__main__":
    main()
