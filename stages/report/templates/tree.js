// One tree as SVG: a column for each turn, a row for each leaf, nodes coloured by reward. Click or arrow keys choose.
"use strict";
const TreeView = (() => {
  const ROW = 26, TOP = 30, RADIUS = 9, LEFT = 18;
  const SVG = "http://www.w3.org/2000/svg";

  function svg(name, attributes, parent, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return parent ? parent.appendChild(element) : element;
  }

  function fill(reward) {
    if (reward === null) return "var(--muted)";
    const [low, high, share] = reward < 0.5 ? ["0", "half", reward * 2] : ["half", "1", reward * 2 - 1];
    return `color-mix(in oklab, var(--reward-${high}) ${Math.round(share * 100)}%, var(--reward-${low}))`;
  }

  const short = (value) => value === null ? "?" : String(Math.round(value * 100) / 100).replace(/^(-?)0\./, "$1.");

  // "0.5→1": reward, and credit where it differs.
  function label(node) {
    const credit = node.credit !== null && node.reward !== null && Math.abs(node.credit - node.reward) > 1e-9;
    return short(node.reward) + (credit ? `→${short(node.credit)}` : "");
  }

  function spoken(node) {
    const parts = [`turn ${node.turn}, sample ${node.sample + 1}`, (node.kind ?? "not run").replaceAll("_", " ")];
    parts.push(node.reward === null ? "no reward" : `reward ${short(node.reward)}`);
    if (node.credit !== null) parts.push(`credit ${short(node.credit)}, advantage ${short(node.advantage)}`);
    if (node.kept === false) parts.push(`pruned ${node.prune_reason}`);
    return parts.join(", ");
  }

  // Rows from the leaves up: a node stands in the middle of its children. Parents stand before children in `nodes`.
  function layout(nodes) {
    const children = nodes.map(() => []);
    const roots = [];
    nodes.forEach((node, index) => (node.parent === null ? roots : children[node.parent]).push(index));
    const row = new Array(nodes.length);
    let next = 0;
    const stack = roots.toReversed().map((index) => [index, false]);
    while (stack.length) {
      const [index, seen] = stack.pop();
      const below = children[index];
      if (!below.length) row[index] = next++;
      else if (seen) row[index] = (row[below[0]] + row[below.at(-1)]) / 2;
      else stack.push([index, true], ...below.toReversed().map((child) => [child, false]));
    }
    return { children, roots, row, rows: next };
  }

  // Draws `nodes` into `place`; `open(index)` is called for what is chosen: a node, or -1 for the task.
  function draw(place, nodes, open) {
    const { children, roots, row, rows } = layout(nodes);
    const turns = Math.max(1, ...nodes.map((node) => node.turn));
    const width = Math.max(place.clientWidth - 10, 90 + turns * 84);
    const step = Math.min((width - LEFT - 76) / turns, 210);
    const height = TOP + rows * ROW + 8;
    const x = (turn) => LEFT + turn * step;
    const y = (index) => TOP + ROW / 2 + (index < 0 ? (row[roots[0]] + row[roots.at(-1)]) / 2 : row[index]) * ROW;
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "tree", "aria-label": "Rollout tree" });
    for (let turn = 1; turn <= turns; turn++) svg("text", { x: x(turn) - RADIUS, y: 16, class: "column" }, root, `turn ${turn}`);

    const edges = nodes.map((node, index) => {
      const from = node.parent ?? -1;
      const [x0, y0, x1, y1] = [x(from < 0 ? 0 : nodes[from].turn), y(from), x(node.turn), y(index)];
      const middle = (x0 + x1) / 2;
      return svg("path", { class: "edge", d: `M${x0},${y0}C${middle},${y0} ${middle},${y1} ${x1},${y1}` }, root);
    });
    const items = new Map();
    const item = (index, level, name) => {
      const group = svg("g", { class: "item", role: "treeitem", tabindex: -1, "aria-level": level, "aria-selected": false, "aria-label": name, "data-index": index }, root);
      items.set(index, group);
      return group;
    };
    const task = item(-1, 1, "the task");
    svg("rect", { x: x(0) - 10, y: y(-1) - 10, width: 20, height: 20, rx: 5 }, task);
    svg("text", { x: x(0), y: y(-1), class: "mark" }, task, "T");
    nodes.forEach((node, index) => {
      const group = item(index, node.turn + 1, spoken(node));
      if (node.kept === false) group.classList.add("pruned");
      // What can be hit: the node with its label, for a finger too.
      svg("rect", { x: x(node.turn) - ROW / 2, y: y(index) - ROW / 2, width: Math.min(step, 68), height: ROW, class: "hit" }, group);
      svg("circle", { cx: x(node.turn), cy: y(index), r: RADIUS, style: `fill: ${fill(node.reward)}` }, group);
      const mark = node.reward === 1 ? "✓" : node.reward === null ? "?" : "";
      if (mark) svg("text", { x: x(node.turn), y: y(index), class: "mark" }, group, mark);
      // Beside a leaf, above the lines that leave any other node.
      const leaf = !children[index].length;
      svg("text", { x: x(node.turn) + RADIUS + 4, y: y(index) + (leaf ? 4 : -7) }, group, label(node));
    });

    let chosen = null;
    function choose(index, focus) {
      const group = items.get(index);
      if (!group) return;
      if (chosen !== null) {
        items.get(chosen).setAttribute("aria-selected", false);
        items.get(chosen).setAttribute("tabindex", -1);
      }
      chosen = index;
      group.setAttribute("aria-selected", true);
      group.setAttribute("tabindex", 0);
      if (focus) group.focus({ preventScroll: true });
      const path = new Set();
      for (let at = index; at !== null && at >= 0; at = nodes[at].parent) path.add(at);
      edges.forEach((edge, at) => edge.classList.toggle("path", path.has(at)));
      // Into view inside the tree's own box; the page stays where it is.
      const top = y(index);
      if (top - 40 < place.scrollTop) place.scrollTop = top - 60;
      else if (top + 40 > place.scrollTop + place.clientHeight) place.scrollTop = top + 60 - place.clientHeight;
      open(index);
    }

    function neighbour(key) {
      const inside = chosen >= 0;
      if (key === "ArrowLeft") return inside ? nodes[chosen].parent ?? -1 : null;
      if (key === "ArrowRight") return (inside ? children[chosen] : roots)[0] ?? null;
      if (key === "Home") return -1;
      const turn = inside ? nodes[chosen].turn : 0;
      const column = [...items.keys()].filter((index) => (index < 0 ? 0 : nodes[index].turn) === turn).sort((a, b) => y(a) - y(b));
      const place = column.indexOf(chosen) + (key === "ArrowDown" ? 1 : -1);
      return key === "ArrowDown" || key === "ArrowUp" ? column[place] ?? null : null;
    }
    root.addEventListener("click", (event) => {
      const group = event.target.closest(".item");
      if (group) choose(Number(group.dataset.index), true);
    });
    root.addEventListener("keydown", (event) => {
      const next = event.key === "Enter" || event.key === " " ? chosen : neighbour(event.key);
      if (next === null || next === undefined) return;
      event.preventDefault();
      choose(next, true);
    });
    place.replaceChildren(root);
    place.scrollTop = 0;
    return { choose };
  }
  return { draw, fill, short };
})();
