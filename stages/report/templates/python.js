// Python code as spans of five classes: keyword, string, number, comment, defined name. For reading, not for parsing.
"use strict";
const Python = (() => {
  const keywords = "False None True and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda match nonlocal not or pass raise return try while with yield case";
  const words = new Set(keywords.split(" "));
  const token = new RegExp([
    "(?<c>#[^\\n]*)",
    "(?<s>\\b[rbfuRBFU]{0,2}(?:\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)|\"(?:\\\\[^]|[^\"\\\\\\n])*\"?|'(?:\\\\[^]|[^'\\\\\\n])*'?)|\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)|\"(?:\\\\[^]|[^\"\\\\\\n])*\"?|'(?:\\\\[^]|[^'\\\\\\n])*'?)",
    "(?<d>(?<=\\b(?:def|class)\\s+)\\w+|^[ \\t]*@[\\w.]+)",
    "(?<n>\\b(?:0[xXoObB][\\da-fA-F_]+|\\d[\\d_]*\\.?\\d*(?:[eE][+-]?\\d+)?j?)\\b)",
    "(?<w>[A-Za-z_]\\w*)",
  ].join("|"), "gmu");

  // The lines of `code`, each a list of [class or "", text].
  function lines(code) {
    const found = [[]];
    const add = (kind, text) => text.split("\n").forEach((part, index) => {
      if (index) found.push([]);
      if (part) found.at(-1).push([kind, part]);
    });
    let end = 0;
    for (const match of code.matchAll(token)) {
      add("", code.slice(end, match.index));
      const { c, s, d, n, w } = match.groups;
      add(c ? "c" : s ? "s" : d ? "d" : n ? "n" : words.has(w) ? "k" : "", match[0]);
      end = match.index + match[0].length;
    }
    add("", code.slice(end));
    return found;
  }
  return { lines };
})();
