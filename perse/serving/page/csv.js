// Comma-, semicolon- or tab-separated values with quoted fields, into rows by column name. What cannot be read is said by its line.
export function readCsv(text, needed) {
  const source = text.replace(/^\uFEFF/, "");
  const first = source.slice(0, source.search(/[\r\n]|$/));
  const separator = [",", ";", "\t"].map((mark) => [first.split(mark).length, mark]).sort((a, b) => b[0] - a[0])[0][1];
  const records = parse(source, separator);
  if (!records.length) throw new Error("the file is empty; its first line names the columns");
  const names = records[0].cells.map((name) => name.trim().toLowerCase());
  const missing = needed.filter((name) => !names.includes(name));
  if (missing.length) throw new Error(`line 1: no column ${missing.join(", ")}; found ${names.join(", ")}`);
  return records.slice(1).map(({ line, cells }) => {
    if (cells.length !== names.length) throw new Error(`line ${line}: ${cells.length} fields, expected ${names.length}`);
    return { line, ...Object.fromEntries(names.map((name, at) => [name, cells[at]])) };
  });
}

function parse(source, separator) {
  const records = [];
  let cells = [], cell = "", quoted = false, started = false, line = 1, begun = 1;
  const end = () => {
    cells.push(cell);
    if (cells.length > 1 || cells[0].trim() !== "") records.push({ line: begun, cells });
    cells = []; cell = ""; started = false; begun = line + 1;
  };
  for (let at = 0; at < source.length; at++) {
    const mark = source[at];
    if (quoted) {
      if (mark === '"' && source[at + 1] === '"') { cell += '"'; at++; }
      else if (mark === '"') quoted = false;
      else { cell += mark; if (mark === "\n") line++; }
    } else if (mark === '"' && !started && cell === "") { quoted = true; started = true; }
    else if (mark === separator) { cells.push(cell); cell = ""; started = false; }
    else if (mark === "\r" && source[at + 1] === "\n") continue;
    else if (mark === "\n" || mark === "\r") { end(); line++; }
    else cell += mark;
  }
  if (quoted) throw new Error(`line ${begun}: a quoted field that does not end`);
  if (cell !== "" || cells.length) end();
  return records;
}
