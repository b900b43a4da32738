"""Small pictures as SVG, readable on light and dark pages: each brings its own ground and two palettes."""

from collections.abc import Mapping
from html import escape
from typing import Literal

FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"
CHARACTER = 0.56
"""How wide a character is on average, in heights of its font."""

Anchor = Literal["start", "middle", "end"]

LIGHT = {"ground": "#ffffff", "ink": "#1f2328", "faint": "#656d76", "rule": "#d8dee4", "bar": "#b6bfc9"}
DARK = {"ground": "#161b22", "ink": "#e6edf3", "faint": "#9198a1", "rule": "#30363d", "bar": "#57606a"}


class Drawing:
    """A picture that grows element by element; colours are names of the palette."""

    def __init__(
        self,
        width: int,
        height: int,
        *,
        light: Mapping[str, str] | None = None,
        dark: Mapping[str, str] | None = None,
    ) -> None:
        self._size = width, height
        self._light, self._dark = {**LIGHT, **(light or {})}, {**DARK, **(dark or {})}
        self._elements: list[str] = []

    def rectangle(
        self, x: float, y: float, width: float, height: float, colour: str, *, tip: str = ""
    ) -> None:
        """A filled rectangle; a browser shows the tip under the pointer."""
        shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{colour}"'
        self._elements.append(f"{shape}><title>{escape(tip)}</title></rect>" if tip else f"{shape}/>")

    def line(self, x1: float, y1: float, x2: float, y2: float, *, dashed: bool = False) -> None:
        """A thin rule."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self._elements.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="stroke-rule"{dashes}/>'
        )

    def curve(self, points: list[tuple[float, float]], colour: str) -> None:
        """A line through points."""
        told = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._elements.append(f'<polyline points="{told}" class="curve stroke-{colour}"/>')

    def dot(self, x: float, y: float, colour: str, *, radius: float = 4) -> None:
        """A point of a curve."""
        self._elements.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{colour}"/>')

    def text(
        self,
        x: float,
        y: float,
        said: str,
        *,
        size: int = 12,
        colour: str = "ink",
        anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:
        """A line of text whose baseline is at `y`."""
        more = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (
            ' font-weight="600"' if bold else ""
        )
        self._elements.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" class="{colour}"{more}>{escape(said)}</text>'
        )

    def render(self) -> str:
        """The whole file."""
        width, height = self._size
        style = (
            f"text{{font-family:{FONT}}}.curve{{fill:none;stroke-width:2}}{_rules(self._light)}"
            f"@media(prefers-color-scheme:dark){{{_rules(self._dark)}}}"
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
            f' height="{height}"><style>{style}</style>'
            f'<rect width="{width}" height="{height}" rx="8" class="ground"/>'
        )
        return "\n".join([head, *self._elements, "</svg>", ""])


def fitted(said: str, width: float, size: int) -> str:
    """As much of a text as fits, nothing if that would say little."""
    most = int(width / (size * CHARACTER))
    if len(said) <= most:
        return said
    return f"{said[: most - 1]}…" if most >= 4 else ""


def _rules(palette: Mapping[str, str]) -> str:
    fills = "".join(f".{name}{{fill:{value}}}" for name, value in palette.items())
    return fills + "".join(f".stroke-{name}{{stroke:{value}}}" for name, value in palette.items())
