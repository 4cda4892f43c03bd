// The table of samples: filters, search, fifty rows at a time; a row opens in the dialog.

const ROWS = 50;

function numberIn(field) {
  return field.value === "" ? null : Number(field.value);
}

// Whether a value lies within two optional bounds; what is not known lies within none.
function within(value, low, high) {
  if (low === null && high === null) return true;
  return value !== null && (low === null || value >= low) && (high === null || value <= high);
}

// By a number of each, small ones first if `sign` is 1; what has none comes last, whichever way.
function ordered(samples, keyOf, sign) {
  const keys = new Map(samples.map((sample) => [sample, keyOf(sample)]));
  return samples.sort((one, other) => {
    const [first, second] = [keys.get(one), keys.get(other)];
    if (first === null || second === null) return (first === null) - (second === null) || one - other;
    return sign * (first - second) || one - other;
  });
}

// What the page says of its samples:
//   columns        [name, text of a sample under what the fields say]
//   failed         whether a row is marked as one that failed
//   selected       samples that the filters leave, in order; `matches` says of each whether the search found it, or is null
//   textsOf        numbers of the texts of a detail in which the search looks; namesOf: names of a sample, which are searched, too
//   chosen         what the dialog is told besides the sample: a judge, a method
//   contents       what the dialog shows, see dialog.js
// Returns how to open a sample.
function setUpListing({ columns, failed, selected, textsOf, namesOf, chosen, contents }) {
  const form = byId("sample-filters");
  const fields = form.elements;
  const table = byId("sample-table");
  const body = table.tBodies[0];
  const progress = byId("search-progress");
  let samples = [];
  let page = 0;
  let matches = null;
  let turn = 0;

  const names = ["Sample", ...columns.map((column) => column[0])];
  table.tHead.append(make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name))));

  async function shown(...given) {
    const made = await contents(...given);
    markFound(made, fields.search.value.trim());
    return made;
  }

  const open = opener(shown, (sample) => {
    const at = samples.indexOf(sample);
    if (at >= 0 && Math.floor(at / ROWS) !== page) {
      page = Math.floor(at / ROWS);
      draw();
    }
    body.querySelector(`[data-sample="${sample}"]`)?.focus();
  });

  function row(sample) {
    const button = make("button", { type: "button", className: "opens", "aria-haspopup": "dialog" }, head.id[sample]);
    button.dataset.sample = sample;
    const cells = columns.map(([, value]) => make("td", {}, value(sample, fields)));
    return make("tr", { className: failed(sample, fields) ? "failed" : "" }, make("th", { scope: "row" }, button), ...cells);
  }

  function draw() {
    const rows = samples.slice(page * ROWS, (page + 1) * ROWS).map(row);
    const nothing = make("tr", {}, make("td", { colSpan: names.length }, "No sample is like that. “Show all” takes the filters away."));
    body.replaceChildren(...(rows.length ? rows : [nothing]));
    byId("sample-count").textContent = `${counted(samples.length)} of ${counted(head.id.length)} samples`;
    pager(byId("sample-pages"), samples.length, ROWS, page, (turned) => {
      page = turned;
      draw();
    });
  }

  function filter() {
    samples = selected(fields, matches);
    page = 0;
    draw();
  }

  async function search() {
    const mine = ++turn;
    const words = fields.search.value.trim();
    let answer = null;
    if (words) {
      progress.hidden = false;
      answer = await found(words, (part) => (progress.value = part), (detail) => textsOf(detail, fields), (sample) => namesOf(sample, fields));
    }
    if (mine !== turn) return;
    progress.hidden = true;
    matches = answer;
    filter();
  }

  let waiting = 0;
  form.addEventListener("input", (event) => {
    const searches = event.target === fields.search || "searches" in event.target.dataset;
    if (!searches) return filter();
    clearTimeout(waiting);
    waiting = setTimeout(search, 200);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(search)); // the fields are empty only after the event
  body.addEventListener("click", (event) => {
    const button = event.target.closest("tr")?.querySelector(".opens");
    if (button && !String(getSelection())) open(Number(button.dataset.sample), samples, chosen(fields));
  });
  body.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const buttons = [...body.querySelectorAll(".opens")];
    const next = step && buttons[buttons.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  form.hidden = false;
  filter();
  return open;
}
