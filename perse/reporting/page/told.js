// What stories are made of: counts in words, texts, parts that can be folded, and why something is missing. Texts stay texts.

const several = (count, one, many) => `${counted(count)} ${count === 1 ? one : many || `${one}s`}`;

async function words(text) {
  return make("p", { className: "text", dir: "auto" }, await textOf(text));
}

function folded(title, open, ...children) {
  return make("details", { open, className: "step" }, make("summary", {}, title), ...children);
}

function because(failed) {
  return make("p", { className: "text error", dir: "auto" }, failed);
}

