"""Reading the report's page back: its tables, SQL, chart specifications and trees."""

import base64
import gzip
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Figure:
    """What the page says in one figure."""

    columns: list[str] = field(default_factory=list)
    values: list[list] = field(default_factory=list)
    texts: list[list[str]] = field(default_factory=list)
    sql: str = ""

    def column(self, name):
        return [row[self.columns.index(name)] for row in self.values]


class Page(HTMLParser):
    """The page's figures by id, its tiles, every attribute that could load something, and its visible text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.figures: dict[str, Figure] = {}
        self.tiles: list[tuple[str, str, str]] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self._figure, self._into, self._tile, self._quiet = None, None, None, 0
        self.feed(text)
        self.specs = json.loads(re.search(r'<script type="application/json" id="specs">(.*?)</script>', text, re.S)[1])
        packed = re.search(r'<script type="text/plain" id="packed">(.*?)</script>', text, re.S)[1]
        self.trees = json.loads(gzip.decompress(base64.b64decode(packed)))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.links += [value for name, value in attributes if name in ("src", "href", "action", "data", "srcset")]
        self._quiet += tag in ("script", "style")
        if tag == "figure":
            self._figure = Figure()
            self.figures[given.get("id", f"settings-{len(self.figures)}")] = self._figure
        elif tag == "a" and given.get("class") == "tile":
            self._tile = []
        elif tag == "th":
            self._figure.columns.append("")
            self._into = "th"
        elif tag == "tr" and self._figure and self._into != "head":
            self._row = ([], [])
        elif tag == "td" and "data-value" in given:
            self._row[0].append(json.loads(given["data-value"]))
            self._row[1].append("")
            self._into = "td"
        elif tag == "pre" and given.get("class") == "sql":
            self._into = "sql"

    def handle_endtag(self, tag):
        self._quiet -= tag in ("script", "style")
        if tag == "tr" and self._row[0]:
            self._figure.values.append(self._row[0])
            self._figure.texts.append(self._row[1])
        if tag == "a" and self._tile is not None:
            self.tiles.append(tuple(self._tile))
            self._tile = None
        if tag in ("th", "td", "pre"):
            self._into = None

    def handle_data(self, data):
        if self._quiet:
            return
        self.words.append(data)
        if self._tile is not None and data.strip():
            self._tile.append(data)
        if self._into == "th":
            self._figure.columns[-1] += data
        elif self._into == "td":
            self._row[1][-1] += data
        elif self._into == "sql":
            self._figure.sql += data
