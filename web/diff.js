// Differences of texts: by lines, and patches in the format of git. Pure.

const MOST = 4000;

/** Lines of two texts beside each other: `[left, right]`, where one of both may be `null`. */
export function sideBySide(before, after) {
  const left = before.split("\n");
  const right = after.split("\n");
  let begin = 0;
  while (begin < left.length && begin < right.length && left[begin] === right[begin]) begin += 1;
  let end = 0;
  while (end < left.length - begin && end < right.length - begin && left.at(-1 - end) === right.at(-1 - end)) end += 1;
  const rows = left.slice(0, begin).map((line) => [line, line, "same"]);
  rows.push(...middle(left.slice(begin, left.length - end), right.slice(begin, right.length - end)));
  rows.push(...left.slice(left.length - end).map((line) => [line, line, "same"]));
  return rows;
}

function middle(left, right) {
  if (left.length * right.length > MOST * MOST) return paired(left, right);
  // The longest common subsequence, by the table of its lengths.
  const width = right.length + 1;
  const table = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = left[i] === right[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const rows = [];
  let gone = [];
  let come = [];
  const flush = () => {
    rows.push(...paired(gone, come));
    [gone, come] = [[], []];
  };
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      flush();
      rows.push([left[i], right[j], "same"]);
      i += 1;
      j += 1;
    } else if (j >= right.length || (i < left.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) {
      gone.push(left[i]);
      i += 1;
    } else {
      come.push(right[j]);
      j += 1;
    }
  }
  flush();
  return rows;
}

function paired(gone, come) {
  const rows = [];
  for (let at = 0; at < Math.max(gone.length, come.length); at += 1) rows.push([gone[at] ?? null, come[at] ?? null, "changed"]);
  return rows;
}

/** The files of a patch: `{path, from, added, removed, binary, hunks: [{head, lines: [{mark, text, line}]}]}`. */
export function patch(text) {
  const files = [];
  let file = null;
  let hunk = null;
  let [oldLine, newLine] = [0, 0];
  for (const line of text.split("\n")) {
    const begin = /^diff --git (?:"?a\/(.*?)"?) (?:"?b\/(.*?)"?)$/.exec(line);
    if (begin) {
      file = { path: begin[2], from: begin[1], added: 0, removed: 0, state: "changed", binary: false, hunks: [] };
      files.push(file);
      hunk = null;
    } else if (!file) {
      continue;
    } else if (line.startsWith("@@")) {
      const numbers = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
      [oldLine, newLine] = numbers ? [Number(numbers[1]), Number(numbers[2])] : [0, 0];
      hunk = { head: line, lines: [] };
      file.hunks.push(hunk);
    } else if (hunk && /^[ +\-\\]/.test(line)) {
      const mark = line[0];
      const row = { mark, text: line.slice(1), line: mark === "-" ? oldLine : newLine };
      if (mark === "+") file.added += 1;
      if (mark === "-") file.removed += 1;
      if (mark !== "+" && mark !== "\\") oldLine += 1;
      if (mark !== "-" && mark !== "\\") newLine += 1;
      hunk.lines.push(row);
    } else if (line.startsWith("new file")) {
      file.state = "added";
    } else if (line.startsWith("deleted file")) {
      file.state = "removed";
    } else if (line.startsWith("rename from")) {
      file.state = "renamed";
    } else if (line.startsWith("Binary files") || line.startsWith("GIT binary patch")) {
      file.binary = true;
    }
  }
  return files;
}
