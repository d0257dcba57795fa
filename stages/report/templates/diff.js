// What changed between two texts, line by line: a longest common subsequence.
"use strict";
const Diff = (() => {
  // [["same" | "removed" | "added", index of the line in the old or the new text], ...]
  function lines(before, after) {
    const width = after.length + 1;
    const longest = new Uint32Array((before.length + 1) * width);
    for (let i = before.length - 1; i >= 0; i--) {
      for (let j = after.length - 1; j >= 0; j--) {
        longest[i * width + j] = before[i] === after[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    const found = [];
    let i = 0, j = 0;
    while (i < before.length || j < after.length) {
      if (i < before.length && j < after.length && before[i] === after[j]) { found.push(["same", j++]); i++; }
      else if (j === after.length || (i < before.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) found.push(["removed", i++]);
      else found.push(["added", j++]);
    }
    return found;
  }
  return { lines };
})();
