// The tree explorer: unpacks the trees, offers them for choice, and shows what is known of the chosen node. Texts of a
// run reach the page as text nodes only. The address keeps the choice: #tree=training/0/task&node=0/task/1.2
"use strict";
(async () => {
  const $ = (id) => document.getElementById(id);
  const bytes = Uint8Array.from(atob($("packed").textContent.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const pack = await new Response(stream).json();
  const text = (place) => place === null ? null : pack.texts[place];
  const nodesOf = (tree) => tree.nodes.map((row) => Object.fromEntries(pack.fields.map((name, i) => [name, row[i]])))
    .map((node) => ({ ...node, kind: text(node.kind) }));

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  // ---- what a tree is about, for the filter and the list
  const place = Object.fromEntries(pack.fields.map((name, i) => [name, i]));
  const rewards = (tree, turn) => tree.nodes.filter((row) => row[place.turn] === turn).map((row) => row[place.reward]);
  for (const tree of pack.trees) {
    tree.turns = Math.max(...tree.nodes.map((row) => row[place.turn]));
    tree.solvedIn = Math.min(...tree.nodes.filter((row) => row[place.reward] === 1).map((row) => row[place.turn]));
  }
  const filters = {
    "all trees": () => true,
    "first solved after feedback": (tree) => tree.solvedIn > 1 && tree.solvedIn < Infinity,
    "solved in turn 1": (tree) => tree.solvedIn === 1,
    "never solved": (tree) => tree.solvedIn === Infinity,
    "with pruned nodes": (tree) => tree.nodes.some((row) => row[place.kept] === false),
    "with unjudged nodes": (tree) => tree.nodes.some((row) => row[place.reward] === null),
  };
  function outline(tree) {
    const turns = Array.from({ length: tree.turns }, (_, i) => rewards(tree, i + 1));
    return `${tree.task} · solved ${turns.map((all) => `${all.filter((r) => r === 1).length}/${all.length}`).join(", ")}`;
  }

  // ---- choosing
  let shown = null, view = null;
  const unique = (values) => [...new Set(values)];
  function fillSelect(select, options, value) {
    select.replaceChildren(...options.map(([key, name]) => make("option", { value: key }, String(name))));
    if (options.some(([key]) => String(key) === String(value))) select.value = value;
    select.disabled = options.length < 2;
  }
  const matching = () => pack.trees.filter((tree) => tree.part === $("tree-part").value &&
    String(tree.version) === $("tree-version").value && filters[$("tree-filter").value](tree));
  function refill({ version = $("tree-version").value, task = $("tree-task").value } = {}) {
    const versions = unique(pack.trees.filter((tree) => tree.part === $("tree-part").value).map((tree) => tree.version));
    fillSelect($("tree-version"), versions.map((v) => [v, v]), version);
    fillSelect($("tree-task"), matching().map((tree) => [tree.task, outline(tree)]), task);
    show();
  }
  function show(node) {
    const trees = matching();
    const tree = trees.find((candidate) => candidate.task === $("tree-task").value);
    const at = trees.indexOf(tree);
    $("tree-previous").disabled = at <= 0;
    $("tree-next").disabled = at < 0 || at === trees.length - 1;
    if (!tree) {
      shown = view = null;
      $("tree").replaceChildren(make("p", { class: "missing" }, pack.trees.length ? "No tree is like that." : "No tree has been sampled yet."));
      $("node").replaceChildren();
      return;
    }
    shown = { tree, nodes: nodesOf(tree) };
    view = TreeView.draw($("tree"), shown.nodes, open);
    const wanted = shown.nodes.findIndex((candidate) => candidate.id === node);
    view.choose(wanted, false);
  }
  function step(by) {
    const trees = matching();
    const at = trees.findIndex((tree) => tree.task === $("tree-task").value);
    $("tree-task").value = trees[at + by].task;
    show();
  }

  // ---- one node
  const words = (name) => (name ?? "not run").replaceAll("_", " ");
  const number = (value, sign) => value === null ? "–" : (sign && value > 0 ? "+" : "") + value.toFixed(3);
  const facts = (pairs) => make("dl", { class: "facts" }, ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  const badge = (name, style) => make("span", { class: "badge", ...(style && { style }) }, name);
  const folded = (title, inner) => make("details", {}, make("summary", {}, title), inner);
  const prose = (content) => make("pre", { class: "prose", tabindex: 0 }, content);
  const pruned = {
    inter: "pruned: its group was not among its task's groups of widest spread in this turn",
    intra: "pruned: not among the siblings of widest spread",
  };

  function line(tokens, change = "same") {
    const spans = tokens.map(([kind, part]) => kind ? make("span", { class: kind }, part) : part);
    return make("span", { class: `line ${change}` }, ...spans);
  }
  function code(now, before) {
    const after = Python.lines(now);
    if (before === null) return make("pre", { class: "code", tabindex: 0 }, ...after.map((tokens) => line(tokens)));
    const old = Python.lines(before);
    const changes = Diff.lines(before.split("\n"), now.split("\n"));
    return make("pre", { class: "code", tabindex: 0 }, ...changes.map(([change, i]) => line((change === "removed" ? old : after)[i], change)));
  }
  function codeBlock(node, parent) {
    const trimmed = (content) => content === null ? null : content.replace(/\n+$/, "");
    const now = trimmed(text(node.code)), before = parent ? trimmed(text(parent.code)) : null;
    if (now === null) return make("p", { class: "missing" }, node.finish_reason === "context_overflow" ? "Its prompt left no room for an answer." : "No code was found in the reply.");
    const holder = make("div", {}, code(now, null));
    const head = make("div", { class: "head" }, make("h4", {}, "Code"));
    if (before !== null) {
      const button = make("button", { type: "button", "aria-pressed": false }, "changes from the attempt before");
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") === "false";
        button.setAttribute("aria-pressed", on);
        holder.replaceChildren(code(now, on ? before : null));
      });
      head.append(button);
    }
    return make("div", {}, head, holder);
  }
  function verdictTable(node, task) {
    if (!node.verdicts.length) return null;
    const rows = node.verdicts.map(([test, visible, kind, message, call, got, expected]) => {
      const detail = make("td", {});
      const source = task ? text(task.tests[test] ?? null) : null;
      detail.append(...Python.lines(source ?? "").map((tokens) => make("code", {}, line(tokens))));
      const passed = text(kind) === "passed";
      const lines = passed ? [] : [[call, "called"], [got, "got"], [expected, "expected"], [message, ""]];
      for (const [value, name] of lines) if (value !== null) detail.append(make("code", {}, (name && `${name}: `) + text(value)));
      return make("tr", {}, make("td", {}, String(test + 1)), make("td", { class: passed ? "good" : "bad" }, words(text(kind))),
        make("td", { class: "optional" }, visible ? "visible" : "hidden"), detail);
    });
    const head = ["test", "verdict", "", ""].map((name, i) => make("th", { scope: "col", ...(i === 2 && { class: "optional" }) }, name));
    const table = make("table", { class: "verdicts" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
    return make("div", {}, make("h4", {}, "Verdicts"), make("div", { class: "scroll", tabindex: 0 }, table));
  }
  function openTask(task) {
    if (!task) return [make("p", { class: "missing" }, "This task is not in the run's task tables.")];
    return [
      make("div", { class: "badges" }, task.difficulty ? badge(task.difficulty) : null, badge(`${task.tests.length} tests`)),
      prose(text(task.prompt)),
      make("h4", {}, "Tests"), code(task.tests.map(text).join("\n"), null),
      task.reference === null ? null : folded("A solution that passes", code(text(task.reference), null)),
    ];
  }
  function open(index) {
    const { tree, nodes } = shown;
    const node = nodes[index];
    const task = pack.tasks[tree.task];
    const key = `#tree=${encodeURIComponent(`${tree.part}/${tree.version}/${tree.task}`)}` + (node ? `&node=${encodeURIComponent(node.id)}` : "");
    history.replaceState(null, "", started ? key : location.hash || location.pathname + location.search);
    if (!node) {
      $("node").replaceChildren(make("h3", {}, `Task ${tree.task}`), ...openTask(task).filter((part) => part !== null));
      return;
    }
    const parent = node.parent === null ? null : nodes[node.parent];
    const badges = [badge(words(node.kind), `border-color: ${TreeView.fill(node.reward)}`), badge(`turn ${node.turn}`), badge(`sample ${node.sample + 1}`)];
    if (node.kept !== null) badges.push(badge(node.kept ? "kept" : `pruned: ${node.prune_reason}`));
    const listed = [
      ["reward", node.reward === null ? "none" : `${node.passed}/${node.total} = ${number(node.reward)}`],
      ["hidden tests passed", node.hidden_total === null ? "–" : `${node.hidden_passed}/${node.hidden_total}`],
      ["credit", number(node.credit)],
      ["advantage", number(node.advantage, true)],
      ["group mean ± std", node.group_mean === null ? "–" : `${number(node.group_mean)} ± ${number(node.group_std)}`],
      ["tokens", `${node.tokens}, ${node.finish_reason === "length" ? "cut" : words(node.finish_reason)}`],
      ["judged", words(node.mode)],
    ];
    $("node").replaceChildren(...[
      make("h3", {}, node.id), make("div", { class: "badges" }, ...badges), facts(listed),
      node.kept === false ? make("p", { class: "missing" }, pruned[node.prune_reason] ?? "pruned") : null,
      codeBlock(node, parent), verdictTable(node, task),
      node.feedback === null ? null : make("div", {}, make("h4", {}, "Feedback"), prose(text(node.feedback))),
      folded("Prompt", prose(text(node.prompt))), folded("Whole reply", prose(text(node.text) || "(empty)")),
    ].filter((part) => part !== null));
  }

  // ---- start, from the address if it names a tree
  let started = false;
  function fromAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (!wanted.has("tree")) return false;
    const [part, version, ...task] = wanted.get("tree").split("/");
    const tree = pack.trees.find((t) => t.part === part && String(t.version) === version && t.task === task.join("/"));
    if (!tree) return false;
    $("tree-part").value = part;
    $("tree-filter").value = "all trees";
    refill({ version, task: tree.task });
    show(wanted.get("node"));
    $("trees").scrollIntoView();
    return true;
  }
  fillSelect($("tree-part"), unique(pack.trees.map((tree) => tree.part)).map((part) => [part, part]));
  fillSelect($("tree-filter"), Object.keys(filters).map((name) => [name, name]));
  if (!fromAddress()) refill();
  started = true;
  for (const id of ["tree-part", "tree-version", "tree-filter"]) $(id).addEventListener("change", () => refill());
  $("tree-task").addEventListener("change", () => show());
  $("tree-previous").addEventListener("click", () => step(-1));
  $("tree-next").addEventListener("click", () => step(1));
  addEventListener("hashchange", fromAddress);
  let width = innerWidth;
  addEventListener("resize", () => { if (shown && innerWidth !== width) { width = innerWidth; show(); } });
  document.documentElement.dataset.trees = "ready";
})();
