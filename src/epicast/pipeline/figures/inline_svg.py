"""A figure as SVG text that stands inside an HTML page: no prolog, nothing from outside, no name that is not used.

Text stays text, in the fonts of the page, so that it can be read aloud, searched and copied.
"""

from __future__ import annotations

import re
import warnings
from io import StringIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.figure import Figure

from epicast.pipeline.figures import style

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
SVG = "http://www.w3.org/2000/svg"
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_FONT_FAMILY = re.compile(r"font-family: [^;]*;? ?")
_REFERENCE = re.compile(r"url\(#([\w-]+)\)")


def svg(figure: Figure, title: str = "") -> str:
    """The title is what a screen reader says; without one, the figure's own description."""
    root = ElementTree.fromstring(_drawn(figure))
    _drop(root, {f"{{{SVG}}}metadata", f"{{{SVG}}}style"})
    _keep_used_ids(root)
    for element in root.iter():
        _simplify(element)
    _share_style(root)
    _head(root, title or str(figure.get_label()) or "Figure")
    return ElementTree.tostring(root, encoding="unicode")


def embedded(text: str, prefix: str) -> str:
    """The same picture with the prefix before all its ids: a page may hold many pictures, and an id only once."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"{prefix} is not an SVG picture: {error}") from None
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        element.attrib = {key: _prefixed(key, value, prefix) for key, value in element.attrib.items()}
    root.attrib = {"xmlns": SVG, **root.attrib}
    return ElementTree.tostring(root, encoding="unicode")


def _prefixed(key: str, value: str, prefix: str) -> str:
    if key == "id":
        return f"{prefix}-{value}"
    if key == "href":
        return f"#{prefix}-{value.removeprefix('#')}"
    return _REFERENCE.sub(rf"url(#{prefix}-\1)", value)


@style.applied()
def _drawn(figure: Figure) -> str:
    text = StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=style.MISSING_LETTERS)
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    return style.NOT_TEXT.sub("\ufffd", text.getvalue())


def _drop(root: Element, tags: set[str]) -> None:
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in tags]:
            parent.remove(child)


def _keep_used_ids(root: Element) -> None:
    values = [(key, value) for element in root.iter() for key, value in element.attrib.items()]
    used = {name for _, value in values for name in _REFERENCE.findall(value)}
    used |= {value.removeprefix("#") for key, value in values if key.endswith("href")}
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)


def _simplify(element: Element) -> None:
    """Names without their namespace, which HTML does not need; a hundredth of a point is exact enough."""
    element.tag = element.tag.removeprefix(f"{{{SVG}}}")
    element.tail = (element.tail or "").strip() or None
    if element.tag != "text":
        element.text = (element.text or "").strip() or None
    attributes = {key.rpartition("}")[2]: _LONG_NUMBER.sub(_rounded, value) for key, value in element.attrib.items()}
    if "style" in attributes:
        attributes["style"] = _FONT_FAMILY.sub("", attributes["style"])
    if "d" in attributes:
        attributes["d"] = " ".join(attributes["d"].split())
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    element.attrib = attributes


def _share_style(root: Element) -> None:
    """Hundreds of marks that look alike say so once, in what holds them."""
    for group in root.iter("g"):
        styles = {mark.get("style") for mark in group}
        if len(group) > 1 and len(styles) == 1 and all(mark.tag == "use" for mark in group):
            group.set("style", styles.pop() or "")
            for mark in group:
                mark.attrib.pop("style", None)


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _head(root: Element, title: str) -> None:
    box = root.get("viewBox", "")
    root.attrib = {
        "xmlns": SVG,
        "role": "img",
        "viewBox": box,
        "width": "100%",
        "font-family": FONTS,
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    named = Element("title")
    named.text = style.NOT_TEXT.sub("\ufffd", title)
    root.insert(0, named)
