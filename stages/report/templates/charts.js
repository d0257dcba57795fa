// Draws the charts in the page's colours, again when the theme changes, and lets each section choose a version.
"use strict";
const Charts = (() => {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const views = new Map(); // chart element -> what vegaEmbed gave

  // A custom property may hold light-dark(...); what an element is painted with is resolved.
  function colour(name) {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function config() {
    const text = colour("text"), muted = colour("muted"), line = colour("line");
    const font = getComputedStyle(document.body).fontFamily;
    return {
      background: null, font, view: { stroke: null },
      range: {
        category: [1, 2, 3, 4, 5].map((i) => colour(`line-${i}`)),
        heatmap: [colour("heat-low"), colour("heat-high")],
      },
      axis: {
        labelColor: muted, titleColor: muted, gridColor: line, domainColor: line, tickColor: line,
        labelFontSize: 11, titleFontSize: 11, titleFontWeight: 500, titlePadding: 8,
      },
      axisX: { grid: false },
      axisBand: { grid: false },
      legend: { labelColor: text, titleColor: muted, labelFontSize: 11, titleFontSize: 11, titleFontWeight: 500, orient: "bottom", titleOrient: "left", columns: 2, symbolType: "circle" },
      line: { color: colour("signal"), point: { fill: colour("signal") } },
    };
  }

  function painted(value) {
    if (typeof value === "string") return value.startsWith("role:") ? colour(value.slice(5)) : value;
    if (Array.isArray(value)) return value.map(painted);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, painted(inner)]));
  }

  async function draw(element) {
    const old = views.get(element);
    const { datasets, data, ...rest } = specs[element.dataset.chart];
    const spec = { ...painted(rest), ...(datasets && { datasets }), ...(data && { data }) };
    const options = { mode: "vega-lite", actions: false, renderer: "svg", config: config(), tooltip: { theme: dark() ? "dark" : "light" } };
    const embedded = await vegaEmbed(element, spec, options);
    if (old) old.finalize();
    views.set(element, embedded);
    await choose(element);
  }

  async function choose(element) {
    const select = element.closest("section").querySelector("select.version");
    const embedded = views.get(element);
    if (!select || select.value === "" || !embedded.vgSpec.signals.some((signal) => signal.name === "version")) return;
    await embedded.view.signal("version", Number(select.value)).runAsync();
  }

  function dark() {
    const forced = document.documentElement.style.colorScheme;
    return forced ? forced === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  async function drawAll(root = document) {
    for (const element of root.querySelectorAll("[data-chart]")) await draw(element);
    document.documentElement.dataset.drawn = "charts";
  }

  document.getElementById("theme").addEventListener("click", () => {
    document.documentElement.style.colorScheme = dark() ? "light" : "dark";
    drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
  for (const select of document.querySelectorAll("select.version")) {
    select.addEventListener("change", () => drawAll(select.closest("section")));
  }
  return { drawAll };
})();
Charts.drawAll();
