// The table of samples: filters, order, search, fifty rows at a time; and the list of what failed.

const ROWS = 50;
const FAILURES = 20;

function numberIn(field) {
  return field.value === "" ? null : Number(field.value);
}

// Whether a value lies within two optional bounds; what is not known lies within none.
function within(value, low, high) {
  if (low === null && high === null) return true;
  return value !== null && (low === null || value >= low) && (high === null || value <= high);
}

function selected(fields, matches) {
  const judge = Number(fields.judge.value);
  const status = fields.status.value === "" ? null : Number(fields.status.value);
  const aspect = fields.aspect.value === "" ? null : Number(fields.aspect.value);
  const reader = fields.reviewer.value.trim().toLowerCase();
  const readers = head.reviewers.map((name) => name.toLowerCase().includes(reader));
  const errors = [numberIn(fields["error-from"]), numberIn(fields["error-to"])];
  const scores = [numberIn(fields["gold-from"]), numberIn(fields["gold-to"])];
  const kept = [];
  head.id.forEach((_, sample) => {
    if (matches && !matches[sample]) return;
    if (status !== null && head.answers[judge].status[sample] !== status) return;
    if (!readers[head.reviewer[sample]]) return;
    if (head.pairs) {
      const answer = predicted(judge, sample);
      const came = answer === null ? "none" : answer === head.gold[sample] ? "right" : "wrong";
      if (aspect !== null && head.aspect[sample] !== aspect) return;
      if (fields.right.value && fields.right.value !== came) return;
      if (fields.choice.value && head.labels[Number(fields.choice.value)] !== head.gold[sample]) return;
    } else if (!within(errorOf(judge, sample), ...errors) || !within(head.gold[sample], ...scores)) return;
    kept.push(sample);
  });
  return ordered(kept, judge, fields.order.value);
}

// What was not answered comes last, whichever way.
function ordered(samples, judge, order) {
  if (!order) return samples;
  const ofError = order === "worst" || order === "best";
  const sign = order === "worst" || order === "high" ? -1 : 1;
  const prediction = (sample) => (head.pairs ? head.answers[judge].value[sample] : predicted(judge, sample));
  const keys = new Map(samples.map((sample) => [sample, ofError ? errorOf(judge, sample) : prediction(sample)]));
  return samples.sort((one, other) => {
    const [first, second] = [keys.get(one), keys.get(other)];
    if (first === null || second === null) return (first === null) - (second === null) || one - other;
    return sign * (first - second) || one - other;
  });
}

function columns() {
  const reader = (judge, sample) => readerOf(sample);
  const gold = (judge, sample) => (head.gold[sample] === null ? "–" : String(head.gold[sample]));
  const label = (judge, sample) => head.answers[judge].label[sample] || "–";
  if (head.pairs) {
    return [
      ["Reader", reader],
      ["Aspect", (judge, sample) => head.aspects[head.aspect[sample]]],
      ["Reader chose", gold],
      ["Judge chose", (judge, sample) => predicted(judge, sample) || "–"],
      ["P(A)", (judge, sample) => number(head.answers[judge].value[sample])],
      ["Right", (judge, sample) => (predicted(judge, sample) === null ? "–" : predicted(judge, sample) === head.gold[sample] ? "yes" : "no")],
      ["Status", statusOf],
    ];
  }
  return [
    ["Reader", reader],
    ["Reader's score", gold],
    ["Predicted", (judge, sample) => number(predicted(judge, sample))],
    ["Label given", label],
    ["Error", (judge, sample) => number(errorOf(judge, sample))],
    ["Status", statusOf],
  ];
}

function setUpSamples() {
  const form = byId("sample-filters");
  const fields = form.elements;
  const table = byId("sample-table");
  const body = table.tBodies[0];
  const progress = byId("search-progress");
  const shownColumns = columns();
  let samples = [];
  let page = 0;
  let matches = null;
  let turn = 0;

  offer(fields.judge, head.judges);
  offer(fields.status, head.statuses);
  offer(fields.aspect, head.aspects);
  offer(fields.choice, head.labels);
  fields.judge.closest("label").hidden = head.judges.length < 2;
  for (const part of form.querySelectorAll(".pairs")) part.hidden = !head.pairs;
  for (const part of form.querySelectorAll(".scores")) part.hidden = head.pairs;
  byId("reviewers").append(...head.reviewers.slice(0, 500).map((name) => make("option", { value: name })));
  const names = ["Sample", ...shownColumns.map((column) => column[0])];
  table.tHead.append(make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name))));

  const open = opener((sample) => {
    const at = samples.indexOf(sample);
    if (at >= 0 && Math.floor(at / ROWS) !== page) {
      page = Math.floor(at / ROWS);
      draw();
    }
    body.querySelector(`[data-sample="${sample}"]`)?.focus();
  });

  function row(sample) {
    const judge = Number(fields.judge.value);
    const button = make("button", { type: "button", className: "opens", "aria-haspopup": "dialog" }, head.id[sample]);
    button.dataset.sample = sample;
    const cells = shownColumns.map(([, value]) => make("td", {}, value(judge, sample)));
    return make("tr", { className: statusOf(judge, sample) === "ok" ? "" : "failed" }, make("th", { scope: "row" }, button), ...cells);
  }

  function draw() {
    const rows = samples.slice(page * ROWS, (page + 1) * ROWS).map(row);
    const nothing = make("tr", {}, make("td", { colSpan: names.length }, "No sample is like that. “Show all” takes the filters away."));
    body.replaceChildren(...(rows.length ? rows : [nothing]));
    byId("sample-count").textContent = `${counted(samples.length)} of ${counted(head.id.length)} samples`;
    pager(byId("sample-pages"), samples.length, ROWS, page, (chosen) => {
      page = chosen;
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
      answer = await found(words, fields.where.value, (part) => (progress.value = part));
    }
    if (mine !== turn) return;
    progress.hidden = true;
    matches = answer;
    filter();
  }

  let waiting = 0;
  form.addEventListener("input", (event) => {
    if (event.target !== fields.search && event.target !== fields.where) return filter();
    clearTimeout(waiting);
    waiting = setTimeout(search, 200);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(search)); // the fields are empty only after the event
  body.addEventListener("click", (event) => {
    const button = event.target.closest("tr")?.querySelector(".opens");
    if (button && !String(getSelection())) open(Number(button.dataset.sample), samples, Number(fields.judge.value));
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

function setUpFailures(open) {
  const form = byId("failure-filters");
  const list = byId("failures");
  if (!form) return;
  const fields = form.elements;
  const all = [];
  head.answers.forEach((answers, judge) =>
    answers.status.forEach((status, sample) => {
      if (status !== null && head.statuses[status] !== "ok") all.push([judge, sample]);
    }),
  );
  offer(fields.judge, head.judges);
  head.statuses.forEach((name, place) => name !== "ok" && fields.status.append(make("option", { value: String(place) }, name)));
  form.hidden = !all.length;

  async function entry([judge, sample]) {
    const answer = (await detailOf(sample)).answers[judge];
    const button = make("button", { type: "button" }, head.id[sample]);
    button.addEventListener("click", () => open(sample, [sample], judge));
    const made = make("li", {}, button, ` ${statusOf(judge, sample)} · ${head.judges[judge]} · reader ${readerOf(sample)}`);
    if (answer.error !== null) made.append(make("p", { className: "text error" }, await textOf(answer.error)));
    const words = answer.text === null ? "It wrote nothing." : "What it wrote:";
    made.append(make("p", { className: "about" }, words));
    if (answer.text !== null) made.append(make("pre", { tabIndex: 0 }, await textOf(answer.text)));
    return made;
  }

  let turn = 0;
  async function draw(page) {
    const mine = ++turn;
    const { judge, status } = fields;
    const kept = all.filter(
      ([one, sample]) =>
        (judge.value === "" || one === Number(judge.value)) &&
        (status.value === "" || head.answers[one].status[sample] === Number(status.value)),
    );
    const entries = await Promise.all(kept.slice(page * FAILURES, (page + 1) * FAILURES).map(entry));
    if (mine !== turn) return;
    list.replaceChildren(...entries);
    byId("failure-count").textContent = all.length
      ? `${counted(kept.length)} of ${counted(all.length)} failures`
      : "Every question of the samples below was answered.";
    pager(byId("failure-pages"), kept.length, FAILURES, page, draw);
  }
  form.addEventListener("input", () => draw(0));
  form.addEventListener("submit", (event) => event.preventDefault());
  draw(0);
}
