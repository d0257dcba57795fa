"""The page's charts: rows of a query in, a Vega-Lite specification out, by Altair.

Charts are as wide as their place on the page. Colours named ``role:...`` are filled in by the page from its style
sheet, so that a chart follows the light and the dark theme; charts with a ``version`` parameter follow the page's
choice.
"""

from collections.abc import Sequence

import altair as alt

HEIGHT = 220
# The styles of nodes by what became of them, in the order in which they are stacked.
FATES = {
    "kept, advantage not 0": "role:signal",
    "kept, advantage 0": "role:quiet",
    "pruned: inter": "role:inter",
    "pruned: intra": "role:intra",
}
WORK = {"engine overhead": "role:overhead", "sampling, training": "role:signal", "other work": "role:quiet"}


def _chart(rows: Sequence[dict]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows)))


def _done(chart: alt.Chart | alt.LayerChart, height: int = HEIGHT) -> dict:
    # Only the width is fitted to the page; `height` is that of the plot, axes and legend come on top.
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    spec = chart.properties(width="container", height=height, autosize=fit).to_dict()
    return {key: value for key, value in spec.items() if key != "$schema"}


def _scale(colours: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(colours), range=list(colours.values()))


def _row() -> alt.Legend:
    """A legend of short names, in one row."""
    return alt.Legend(columns=5, symbolOpacity=1)


def _of_version(chart: alt.Chart) -> alt.Chart:
    """The chart of one version, or of all where the parameter `version` is null."""
    version = alt.param(name="version", value=None)
    return chart.add_params(version).transform_filter("version === null || datum.version === version")


def by_version(
    rows: Sequence[dict], value: str, line: str, title: str, low: str | None = None, high: str | None = None
) -> dict:
    """`value` (a share, 0 to 1) over policy versions, a line for each `line`, with intervals where `low` is given."""
    base = _chart(rows).encode(
        x=alt.X("version:O", title="policy version", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset(f"{line}:N"),
        color=alt.Color(f"{line}:N", title=line, scale=alt.Scale(range="category"), legend=_row()),
    )
    tooltip = [alt.Tooltip("version:O"), alt.Tooltip(f"{line}:N"), alt.Tooltip(f"{value}:Q", format=".3f", title=title)]
    if low and high:
        ends = ((low, "interval from"), (high, "interval to"))
        tooltip += [alt.Tooltip(f"{name}:Q", format=".3f", title=end) for name, end in ends]
    y = alt.Y(f"{value}:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5, format=".1f"))
    layers = [base.mark_line(strokeWidth=2, opacity=0.55).encode(y=y)]
    if low and high:
        layers.append(base.mark_rule(strokeWidth=1.5, clip=True).encode(y=alt.Y(f"{low}:Q"), y2=f"{high}:Q"))
    layers.append(base.mark_point(filled=True, size=70, opacity=1).encode(y=y, tooltip=tooltip))
    return _done(alt.layer(*layers))


def distribution(rows: Sequence[dict], width: float, title: str, low: float, high: float) -> dict:
    """A histogram from counted bins, kept nodes apart from pruned ones, of the chosen version.

    `rows` name each bin by its middle; `low` and `high` are the lowest and highest middle, so that turns compare.
    """
    parts = ({**row, "node": "kept" if row["kept"] else "pruned"} for row in rows)
    edged = [{**row, "start": row["bin"] - width / 2, "end": row["bin"] + width / 2} for row in parts]
    domain = [low - width / 2, high + width / 2]
    chart = (
        _chart(edged)
        .mark_bar(binSpacing=1)
        .encode(
            x=alt.X(
                "start:Q",
                bin="binned",
                title=title,
                scale=alt.Scale(domain=domain, nice=False),
                axis=alt.Axis(tickCount=6, format="~g"),
            ),
            x2="end:Q",
            y=alt.Y("sum(nodes):Q", title="nodes", scale=alt.Scale(nice=True), axis=alt.Axis(tickCount=4, format="~s")),
            color=alt.Color("node:N", title=None, scale=_scale({"kept": "role:signal", "pruned": "role:inter"})),
            tooltip=[
                alt.Tooltip("bin:Q", format="~g", title=f"{title} around"),
                alt.Tooltip("node:N"),
                alt.Tooltip("sum(nodes):Q", title="nodes"),
            ],
        )
    )
    return _done(_of_version(chart), 150)


def fates(rows: Sequence[dict]) -> dict:
    """Kept and pruned nodes of each version and turn, as shares of the turn's nodes."""
    order = list(FATES)
    counts = [
        (row, (row["with_signal"], row["kept"] - row["with_signal"], row["pruned_inter"], row["pruned_intra"]))
        for row in rows
    ]
    long = [
        {"version": row["version"], "turn": row["turn"], "fate": fate, "place": place, "nodes": nodes}
        for row, parts in counts
        for place, (fate, nodes) in enumerate(zip(order, parts, strict=True))
        if nodes
    ]
    chart = (
        _chart(long)
        .mark_bar()
        .encode(
            x=alt.X("version:O", title="policy version", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("turn:N", title="turn"),
            y=alt.Y("nodes:Q", stack="zero", title="nodes", axis=alt.Axis(tickCount=5, format="~s")),
            color=alt.Color("fate:N", title=None, scale=_scale(FATES), sort=order),
            order=alt.Order("place:Q"),
            tooltip=["version:O", "turn:O", "fate:N", "nodes:Q"],
        )
    )
    return _done(chart)


def kinds(rows: Sequence[dict], order: Sequence[str]) -> dict:
    """How nodes ended, by turn, of the chosen version."""
    chart = _of_version(_chart(rows)).transform_aggregate(nodes="sum(nodes)", groupby=["turn", "kind"])
    chart = chart.transform_joinaggregate(all="sum(nodes)", groupby=["turn"]).transform_calculate(
        share="datum.nodes / datum.all"
    )
    chart = chart.mark_bar().encode(
        y=alt.Y("kind:N", title=None, sort=list(order), axis=alt.Axis(labelLimit=160)),
        yOffset=alt.YOffset("turn:N"),
        x=alt.X("share:Q", title="share of the turn's nodes", axis=alt.Axis(format=".0%", tickCount=5)),
        color=alt.Color("turn:N", title="turn", scale=alt.Scale(range="category"), legend=_row()),
        tooltip=["turn:O", "kind:N", "nodes:Q", alt.Tooltip("share:Q", format=".1%")],
    )
    turns, names = {row["turn"] for row in rows}, {row["kind"] for row in rows}
    return _done(chart, len(names) * (8 + 10 * len(turns)))


def repairs(rows: Sequence[dict], order: Sequence[str]) -> dict:
    """Kind x kind: what attempts of each failed kind (rows) became after feedback (columns), of the chosen version."""
    base = _of_version(_chart(rows)).transform_aggregate(nodes="sum(nodes)", groupby=["parent_kind", "child_kind"])
    base = base.transform_joinaggregate(all="sum(nodes)", groupby=["parent_kind"]).transform_calculate(
        share="datum.nodes / datum.all"
    )
    base = base.encode(
        x=alt.X(
            "child_kind:N",
            title="the next attempt",
            sort=list(order),
            axis=alt.Axis(orient="top", labelAngle=-90, labelLimit=140),
        ),
        y=alt.Y("parent_kind:N", title="a failed attempt", sort=list(order), axis=alt.Axis(labelLimit=140)),
    )
    tooltip = [
        alt.Tooltip("parent_kind:N", title="failed attempt"),
        alt.Tooltip("child_kind:N", title="next attempt"),
        "nodes:Q",
        alt.Tooltip("share:Q", format=".1%"),
    ]
    cells = base.mark_rect(cornerRadius=3).encode(
        color=alt.Color(
            "share:Q", title="share of the row", scale=alt.Scale(domain=[0, 1], range="heatmap"), legend=None
        ),
        tooltip=tooltip,
    )
    text = base.mark_text(fontSize=11).encode(
        text=alt.Text("nodes:Q", format=",d"),
        color=alt.condition("datum.share > 0.55", alt.value("role:onheat"), alt.value("role:text")),
        tooltip=tooltip,
    )
    return _done(alt.layer(cells, text), 30 * len({row["parent_kind"] for row in rows}))


def work_of(row: dict) -> str:
    """What a phase's time went into: one of WORK."""
    if row["engine_overhead"]:
        return "engine overhead"
    return "sampling, training" if row["unit"] == "tokens" else "other work"


def times(rows: Sequence[dict]) -> dict:
    """Seconds of each stage, by what they went into, the longest stage first."""
    order = list(WORK)
    long = [{**row, "work": work_of(row), "place": order.index(work_of(row))} for row in rows]
    seconds: dict[str, float] = {}
    for row in rows:
        seconds[row["stage"]] = seconds.get(row["stage"], 0.0) + row["seconds"]
    stages = sorted(seconds, key=lambda stage: -seconds[stage])
    base = _chart(long).encode(y=alt.Y("stage:N", title=None, sort=stages))
    bars = base.mark_bar().encode(
        x=alt.X("sum(seconds):Q", title="seconds", axis=alt.Axis(tickCount=5, format="~s")),
        color=alt.Color("work:N", title=None, scale=_scale(WORK), sort=order),
        order=alt.Order("place:Q"),
        tooltip=["stage:N", "work:N", alt.Tooltip("sum(seconds):Q", format=",.1f", title="seconds")],
    )
    totals = base.mark_text(align="left", dx=5, fontSize=11, color="role:text").encode(
        x="sum(seconds):Q", text=alt.Text("sum(seconds):Q", format=",.0f")
    )
    return _done(alt.layer(bars, totals), 30 * len(stages))


def steps(rows: Sequence[dict], value: str, title: str) -> dict:
    """A quantity of the optimiser over the steps of the run."""
    rows = [row for row in rows if row[value] is not None]
    places = [row["step_of_run"] for row in rows]
    ticks = {"values": places} if len(places) <= 8 else {"tickCount": 6, "tickMinStep": 1}
    form = ".2~e" if value == "lr" else "~g"
    low, high = min(row[value] for row in rows), max(row[value] for row in rows)
    # What is as good as constant needs room above and below, else its only tick is not where its line is.
    constant = high - low <= 1e-3 * max(abs(low), abs(high))
    domain = {"domain": sorted((0.9 * low, 1.1 * high or 1.0))} if constant else {}
    chart = _chart(rows).encode(
        x=alt.X(
            "step_of_run:Q", title="optimiser step", scale=alt.Scale(nice=False), axis=alt.Axis(format="d", **ticks)
        ),
        y=alt.Y(
            f"{value}:Q", title=None, scale=alt.Scale(zero=False, **domain), axis=alt.Axis(tickCount=4, format=form)
        ),
        tooltip=["version:O", "step:O", alt.Tooltip(f"{value}:Q", format=".4g", title=title)],
    )
    point = alt.OverlayMarkDef(size=30, color="role:signal") if len(rows) <= 50 else False
    return _done(chart.mark_line(strokeWidth=1.5, color="role:signal", point=point), 130)


def differences(rows: Sequence[dict]) -> dict:
    """Differences in pass@1 from the baseline, in points, with their intervals: a row per arm, a mark per iteration."""
    base = _chart(rows).encode(
        y=alt.Y("arm:N", title=None, sort=None),
        yOffset=alt.YOffset("iteration:N"),
        color=alt.Color("iteration:N", title="attempts", scale=alt.Scale(range="category"), legend=_row()),
    )
    x = alt.X("points:Q", title="points of pass@1 above the baseline", axis=alt.Axis(tickCount=6, grid=True))
    tooltip = [
        "arm:N",
        "iteration:O",
        *(alt.Tooltip(f"{n}:Q", format="+.1f") for n in ("points", "at_least", "at_most")),
    ]
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color="role:quiet").encode(x="zero:Q")
    rule = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("at_least:Q"), x2="at_most:Q")
    point = base.mark_point(filled=True, size=70, opacity=1).encode(x=x, tooltip=tooltip)
    shown = {(row["arm"], row["iteration"]) for row in rows}
    return _done(alt.layer(zero, rule, point), max(80, 22 * len(shown)))
