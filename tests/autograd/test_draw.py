"""`draw`: what the picture says, and that it can be read: nothing lies over anything else."""

import html
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import jitgrad as torch
from jitgrad.autograd._graph import layout, svg
from tests.libraries import function

draw = torch.autograd.graph.draw
NAMESPACE = "{http://www.w3.org/2000/svg}"


def leaf(*shape):
    return torch.ones(shape, requires_grad=True)


def worked_example():
    x, w, b = torch.tensor(2.0), torch.tensor(3.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    y = w * x + b
    loss = y * y
    return loss, {"x": x, "w": w, "b": b, "y": y, "loss": loss}


def mlp(depth=3):
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(16, 16), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers)
    return torch.nn.functional.mse_loss(model(torch.randn(8, 16)), torch.zeros(8, 16)), model


def residual():
    """Long arrows, shared leaves, several outputs."""
    x, w = leaf(4, 8), leaf(8, 8)
    for _ in range(3):
        a, b = (x @ w).tanh().chunk(2, -1)
        x = x + torch.cat([b.sigmoid(), a * 2], -1)
    return (x * x).mean(), {"w": w}


def branching():
    torch.manual_seed(1)
    x = leaf(3)
    values = [x * 1]
    for k in range(30):
        values.append(values[(k * 7) % len(values)] * values[(k * 5) % len(values)].tanh())
    return sum(values[-4:]).sum(), {"x": x}


GRAPHS = {"worked example": worked_example, "mlp": mlp, "residual": residual, "branching": branching, "deep mlp": lambda: mlp(12)}


# ---- what it says
def test_the_worked_example():
    loss, names = worked_example()
    picture = draw(loss, names)
    assert [(box.kind, box.heading) for box in picture.boxes] == [
        ("op", "MulBackward0"), ("op", "AddBackward0"), ("leaf", "b"), ("op", "MulBackward0"), ("leaf", "w"), ("none", "no gradient"),
    ]  # fmt: skip
    assert sorted(picture.edges) == [(0, 1), (0, 1), (1, 2), (1, 3), (3, 4), (3, 5)]
    lines = [[text for text, _ in box.lines] for box in picture.boxes]
    assert lines[0] == ["loss []", "saved self = y [], 4 B", "saved other = y [], 4 B"]
    assert lines[1] == ["y []"]
    assert lines[3] == ["result []", "saved other = x [], 4 B"]
    assert lines[4] == ["AccumulateGrad", "[] float32"]


def test_a_trace_adds_the_gradients():
    loss, names = worked_example()
    trace = torch.autograd.graph.trace_backward(loss)
    picture = draw(loss, names, trace=trace)
    said = [text for box in picture.boxes for text, ink in box.lines if ink == "gradient"]
    assert said == ["step 1: gradient 1", "step 2: gradient 14", "step 3: grad = 14", "step 4: gradient 14", "step 5: grad = 28"]
    assert "saved values released" in picture.svg


def test_a_module_names_its_leaves():
    loss, model = mlp(2)
    picture = draw(loss, model)
    assert [box.heading for box in picture.boxes if box.kind == "leaf"] == ["2.bias", "2.weight", "0.bias", "0.weight"]
    assert any("saved weight = 2.weight [16, 16], 1.0 KiB" in text for box in picture.boxes for text, _ in box.lines)
    assert {box.heading for box in draw(loss).boxes if box.kind == "leaf"} == {"AccumulateGrad"}


def test_packed_and_many_values():
    x = leaf(1000)
    with torch.autograd.graph.save_compressed():
        y = x.exp()
    (line,) = [text for text, _ in draw(y).boxes[0].lines if "saved" in text]
    assert re.fullmatch(r"saved result \[1000\], packed: \d+ B", line)
    many = function(torch, lambda ctx, x: ctx.save_for_backward(*[x * k for k in range(10)]) or x * 1, lambda ctx, g: g, "Many").apply(x)
    assert "and 4 more saved values" in [text for text, _ in draw(many).boxes[0].lines]


def test_outputs():
    a, b = leaf(2) * 2, leaf(3).exp()
    assert len(draw((a, b)).boxes) == 5
    assert len(draw(a.grad_fn).boxes) == len(draw(torch.autograd.graph.get_gradient_edge(a)).boxes) == 2 + 1
    with pytest.raises(RuntimeError, match="draw: the tensor does not require grad"):
        draw(torch.ones(2))
    with pytest.raises(TypeError, match="draw: expected a Tensor"):
        draw(3)
    for wrong in ({"direction": "up"}, {"max_nodes": 0}, {"max_nodes": True}):
        with pytest.raises(ValueError, match=f"draw: {next(iter(wrong))} should be"):
            draw(a, **wrong)


# ---- the texts
def test_dot():
    loss, names = worked_example()
    lines = draw(loss, {**names, 'a "name"\\': names["w"]}).dot.splitlines()
    assert lines[0] == "digraph backward {"
    assert lines[-1] == "}"
    nodes = [line for line in lines if re.fullmatch(r'  n\d+ \[label="(?:[^"\\]|\\.)*", fillcolor="#\w+", color="#\w+", fontcolor="#\w+"\];', line)]
    arrows = [line for line in lines if re.fullmatch(r"  n\d+ -> n\d+( \[style=dashed\])?;", line)]
    assert (len(nodes), len(arrows)) == (6, 6)
    assert len(lines) == 4 + 12
    escaped = draw(loss, {'a "name"\\': names["w"]}).dot
    assert r'label="a \"name\"\\\nAccumulateGrad' in escaped
    assert "rankdir=LR" in draw(loss, direction="right").dot


def test_text_is_escaped():
    loss, names = worked_example()
    picture = draw(loss, {"<script>&": names["w"]})
    ElementTree.fromstring(picture.svg)
    assert "<script>" not in picture.svg
    assert html.escape("<script>&") in picture.svg
    assert picture._repr_svg_() == picture.svg


def test_it_is_the_same_every_time():
    pictures = [draw(*mlp()) for _ in range(2)]
    assert pictures[0].svg == pictures[1].svg
    assert pictures[0].dot == pictures[1].dot


def test_save(tmp_path):
    picture = draw(*worked_example())
    for name, text in (("a.svg", picture.svg), ("b.dot", picture.dot), ("c.gv", picture.dot)):
        picture.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    with pytest.raises(ValueError, match=r"not as '\.png'"):
        picture.save(str(tmp_path / "d.png"))


def test_large_graphs():
    y = leaf(2)
    for _ in range(100_000):
        y = y * 1.0
    picture = draw(y)
    assert picture.omitted == 100_001 - 200
    assert [box for box in picture.boxes if box.kind == "more"] == [svg.Box("more", "99,801 more nodes", (("not drawn: max_nodes=200", "plain"),))]
    assert "99,801 more nodes" in picture.svg
    assert "99,801 more nodes" in picture.dot
    assert "99,801 nodes left out" in repr(picture)
    wide = draw(torch.stack([leaf(1) * 1 for _ in range(500)]).sum(), max_nodes=40)
    assert len([box for box in wide.boxes if box.kind in ("op", "leaf")]) == 40
    assert len(wide.edges) == len(set(wide.edges))


def test_long_names_are_shortened():
    w = leaf(2)
    picture = draw(w * 2, {"encoder." * 30 + "weight": w})
    heading = picture.boxes[1].heading
    assert len(heading) == 56
    assert heading.startswith("encoder.")
    assert heading.endswith("weight")


# ---- the picture
def rectangles(picture):
    """Corners of the boxes."""
    root = ElementTree.fromstring(picture.svg)
    found = [rect for rect in root.iter(f"{NAMESPACE}rect") if rect.get("x") is not None]
    return np.array([[float(rect.get(key)) for key in ("x", "y", "width", "height")] for rect in found]), root


@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_lie_apart(name, direction):
    loss, names = GRAPHS[name]()
    boxes, root = rectangles(draw(loss, names, direction=direction))
    x, y, width, height = boxes.T
    apart_x = (x[:, None] + width[:, None] + 8 <= x[None]) | (x[None] + width[None] + 8 <= x[:, None])
    apart_y = (y[:, None] + height[:, None] + 8 <= y[None]) | (y[None] + height[None] + 8 <= y[:, None])
    assert (apart_x | apart_y | np.eye(len(boxes), dtype=bool)).all()
    assert (boxes[:, :2] >= -0.05).all()
    assert (x + width).max() <= float(root.get("width"))
    assert (y + height).max() <= float(root.get("height"))


@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize("name", GRAPHS)
def test_arrows_pass_beside_boxes(name, direction):
    """Points along each arrow lie in no box but touch those at its ends."""
    loss, names = GRAPHS[name]()
    picture = draw(loss, names, direction=direction)
    boxes, root = rectangles(picture)
    arrows = [path.get("d") for path in root.iter(f"{NAMESPACE}path") if path.get("stroke") != "none"]
    assert len(arrows) == len(picture.edges)
    for (start, end), text in zip(picture.edges, arrows, strict=True):
        points = along(text)
        inside = (points[:, None] > boxes[None, :, :2] + 1).all(-1) & (points[:, None] < boxes[None, :, :2] + boxes[None, :, 2:] - 1).all(-1)
        assert not inside.any(), (picture.boxes[start].heading, picture.boxes[end].heading)
        for box, point in ((boxes[start], points[0]), (boxes[end], points[-1])):
            assert (point >= box[:2] - 0.2).all()
            assert (point <= box[:2] + box[2:] + 0.2).all()


def along(text):
    """Points of a path of straight lines and cubic curves."""
    points, at = [], np.zeros(2)
    for kind, numbers in re.findall(r"([MLC])([-\d. ]+)", text):
        given = np.array(numbers.split(), float).reshape(-1, 2)
        t = np.linspace(0, 1, 12)[:, None]
        if kind == "C":
            a, b, c = given
            points.append((1 - t) ** 3 * at + 3 * t * (1 - t) ** 2 * a + 3 * t**2 * (1 - t) * b + t**3 * c)
        else:
            points.append(given if kind == "M" else at + t * (given[0] - at))
        at = given[-1]
    return np.concatenate(points)


@pytest.mark.parametrize("name", GRAPHS)
def test_text_fits_into_its_box(name):
    """By the widths of DejaVu Sans, which is wider than Helvetica and Arial."""
    font = pytest.importorskip("matplotlib.font_manager")
    from matplotlib.ft2font import FT2Font

    loss, names = GRAPHS[name]()
    for box in draw(loss, names).boxes:
        width, _ = svg.size_of_box(box)
        heading = (box.heading, 11, "normal") if box.kind == "none" else (box.heading, 13, "bold")
        for text, size, weight in (heading, *[(text, 11, "normal") for text, _ in box.lines]):
            face = FT2Font(font.findfont(font.FontProperties(family="DejaVu Sans", weight=weight)))
            face.set_size(size, 72)
            face.set_text(text, 0.0)
            assert face.get_width_height()[0] / 64 <= width - 8


@pytest.mark.parametrize("name", ["worked example", "mlp", "deep mlp", "residual"])
def test_no_crossings_where_none_are_needed(name):
    loss, names = GRAPHS[name]()
    picture = draw(loss, names)
    rank = layout.ranks(len(picture.boxes), picture.edges)
    links = []
    for start, end in picture.edges:
        chain = [start]
        for level in range(rank[start] + 1, rank[end]):
            chain.append(len(rank))
            rank.append(level)
        links += zip([*chain], [*chain[1:], end], strict=True)
    rows = layout.order(rank, links)
    down = {}
    for start, end in links:
        down.setdefault(start, []).append(end)
    assert layout.crossings(rows, down) <= (0 if name != "residual" else 4)


def test_the_way_through_a_model_is_straight():
    picture = draw(*mlp(6))
    boxes, _ = rectangles(picture)
    ops = [k for k, box in enumerate(picture.boxes) if box.kind == "op"]
    middles = boxes[ops, 0] + boxes[ops, 2] / 2
    assert np.ptp(middles) < 8


def test_crossings_are_counted():
    assert layout.crossings([[0, 1], [2, 3]], {0: [2], 1: [3]}) == 0
    assert layout.crossings([[0, 1], [2, 3]], {0: [3], 1: [2]}) == 1
    assert layout.crossings([[0, 1], [2, 3, 4]], {0: [3, 4], 1: [2, 3]}) == 3
