"""Write the pictures of graphs in docs/images, drawn by `autograd.graph.draw`.

python tools/draw_pictures.py            write them
python tools/draw_pictures.py --check    say which are out of date, and fail if any is
"""

import argparse
import sys
from pathlib import Path

import jitgrad as torch

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def worked_example():
    """The README's example, with the gradients of its backward."""
    x = torch.tensor(2.0)
    w = torch.tensor(3.0, requires_grad=True)
    b = torch.tensor(1.0, requires_grad=True)
    y = w * x + b
    loss = y * y
    names = {"x": x, "w": w, "b": b, "y": y, "loss": loss}
    trace = torch.autograd.graph.trace_backward(loss, retain_graph=True)
    return torch.autograd.graph.draw(loss, names, trace=trace, direction="right")


def mlp():
    """The model of the demo on a batch of 32, before its backward."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    pixels, digits = torch.zeros(32, 64), torch.zeros(32, dtype=torch.int64)
    loss = nn.functional.cross_entropy(model(pixels), digits)
    return torch.autograd.graph.draw(loss, [*model.named_parameters(), ("pixels", pixels), ("digits", digits), ("loss", loss)])


PICTURES = {"worked_example.svg": worked_example, "mlp.svg": mlp}


def main():
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    stale = []
    for name, picture in PICTURES.items():
        path, text = IMAGES / name, picture().svg
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")
    if stale:
        sys.exit(f"out of date: {', '.join(stale)}; run python tools/draw_pictures.py")


if __name__ == "__main__":
    main()
