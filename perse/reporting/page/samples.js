// The samples: their columns and filters, and the list of what failed.

const FAILURES = 20;

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
      if (aspect !== null && head.aspect[sample] !== aspect) return;
      if (fields.right.value && fields.right.value !== cameOf(judge, sample)) return;
      if (fields.choice.value && head.labels[Number(fields.choice.value)] !== head.gold[sample]) return;
    } else if (!within(errorOf(judge, sample), ...errors) || !within(head.gold[sample], ...scores)) return;
    kept.push(sample);
  });
  const order = fields.order.value;
  if (!order) return kept;
  const prediction = (sample) => (head.pairs ? head.answers[judge].value[sample] : predicted(judge, sample));
  const keyOf = order === "worst" || order === "best" ? (sample) => errorOf(judge, sample) : prediction;
  return ordered(kept, keyOf, order === "worst" || order === "high" ? -1 : 1);
}

// The texts in which a search looks.
function textsOf(detail, fields) {
  const parts = {
    query: () => detail.query.map((part) => part[1]),
    profile: () => detail.profile.flatMap((past) => past.parts.map((part) => part[1])),
    review: () => (detail.review === null ? [] : [detail.review]),
    answer: () => detail.answers.flatMap((answer) => (answer ? [answer.text, answer.error] : [])).filter((text) => text !== null),
  };
  const where = fields.where.value;
  return where ? parts[where]() : Object.values(parts).flatMap((part) => part());
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
      ["Judge chose", (judge, sample) => (head.answers[judge].even[sample] ? "neither" : predicted(judge, sample) || "–")],
      ["P(A)", (judge, sample) => number(head.answers[judge].value[sample])],
      ["Right", (judge, sample) => ({ right: "yes", wrong: "no" })[cameOf(judge, sample)] || "–"],
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
  const judgeIn = () => Number(fields.judge.value);
  offer(fields.judge, head.judges);
  offer(fields.status, head.statuses);
  offer(fields.aspect, head.aspects);
  offer(fields.choice, head.labels);
  fields.judge.closest("label").hidden = head.judges.length < 2;
  for (const part of form.querySelectorAll(".pairs")) part.hidden = !head.pairs;
  for (const part of form.querySelectorAll(".scores")) part.hidden = head.pairs;
  byId("reviewers").append(...head.reviewers.slice(0, 500).map((name) => make("option", { value: name })));
  return setUpListing({
    columns: columns().map(([name, value]) => [name, (sample) => value(judgeIn(), sample)]),
    failed: (sample) => statusOf(judgeIn(), sample) !== "ok",
    selected,
    textsOf,
    namesOf: (sample) => (fields.where.value ? [] : [head.id[sample], readerOf(sample)]),
    chosen: judgeIn,
    contents: contentsOf,
  });
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
