// The story of a sample under one method: from the general summary to the one that was kept. Texts stay texts.

const unchanged = (changes) => changes !== null && !/[+-]/.test(changes);
const allNew = (changes) => changes !== null && /^-\d+\+\d+$/.test(changes);

// What a heading says of a text's differences.
function change(changes) {
  return unchanged(changes) ? ", as before" : allNew(changes) ? ", a new text" : "";
}

// A text with its differences from the one before, where there was one of which something stayed.
async function told(text, before, changes) {
  if (text === null) return null;
  return changes === null || allNew(changes) ? words(text) : marked(await textOf(before), await textOf(text), changes);
}

async function responseOf(response) {
  const made = [];
  for (const [name, [text, before, changes]] of [["Analysis", response[0]], ["Suggestions", response[1]]]) {
    made.push(make("h6", {}, name, change(changes)), await told(text, before, changes));
  }
  return made;
}

async function verdictOf(verdict) {
  const made = make("article", { className: verdict.passed ? "turn supervisor passed" : "turn supervisor" });
  made.append(make("h5", {}, `The supervisor: ${verdict.passed ? "no suggestions, passed ✓" : "to be revised ✗"}`));
  if (verdict.thought !== null) made.append(make("h6", {}, "Thought"), await words(verdict.thought));
  if (verdict.recommendations !== null) made.append(make("h6", {}, "Recommendations"), await words(verdict.recommendations));
  return made;
}

async function turnsOf(played) {
  const made = [];
  for (const [at, turn] of played.turns.entries()) {
    const user = make("article", { className: "turn user" }, make("h5", {}, `Response ${at + 1} of the user`));
    if (turn.response) user.append(...(await responseOf(turn.response)));
    if (turn.failed !== null) user.append(because(await textOf(turn.failed)));
    made.push(user);
    if (turn.verdict) made.push(await verdictOf(turn.verdict));
  }
  return made;
}

function cameOf(played) {
  const responses = several(played.responses, "response");
  if (played.passed === null) return `${responses}, unsupervised`;
  return played.passed ? `passed, ${responses}` : `not passed, ${responses}`;
}

async function practiceOf(trace) {
  const rounds = [];
  for (const [at, played] of trace.practice.entries()) {
    rounds.push(folded(`Round ${at + 1}: ${cameOf(played)}`, false, ...(await turnsOf(played))));
  }
  const shown = [];
  for (const text of trace.demonstrations) shown.push(make("article", { className: "turn user" }, await words(text)));
  if (shown.length) rounds.push(folded(`Shown as ${several(shown.length, "demonstration")}`, false, ...shown));
  const passed = trace.practice.filter((played) => played.passed).length;
  return folded(`Practice: ${several(trace.practice.length, "round")}, ${counted(passed)} passed`, false, ...rounds);
}

async function reviewOf(review, place, mark, className) {
  const title = make("h5", {}, `${place}. ${review.score} of 5 stars${mark ? `, ${mark}` : ""}`);
  return make("article", { className: `past ${className}` }, title, await words(review.text));
}

// What was filtered away, and what was kept: product reviews first, then the history.
async function reviewsOf(detail, filtered) {
  const removed = new Set(filtered ? filtered.removed : []);
  const drawn = new Set(filtered ? filtered.drawn : []);
  const chosen = filtered ? filtered.history : null;
  const made = [];
  if (filtered && filtered.failed !== null) made.push(because(await textOf(filtered.failed)));
  const product = [];
  for (const [at, review] of detail.product.entries()) {
    const mark = drawn.has(at + 1) ? "removed, drawn by chance" : removed.has(at + 1) ? "removed" : "";
    product.push(await reviewOf(review, at + 1, mark, removed.has(at + 1) ? "away" : ""));
  }
  const history = [];
  for (const [at, review] of detail.history.entries()) {
    const mine = at + 1 === chosen;
    const mark = mine ? (filtered.historyDrawn ? "chosen by chance" : "chosen for the rewriting") : "";
    history.push(await reviewOf(review, at + 1, mark, !filtered || mine ? "" : "away"));
  }
  const away = filtered ? `, ${counted(removed.size)} removed${drawn.size ? ` (${counted(drawn.size)} by chance)` : ""}` : "";
  made.push(folded(`Reviews of the product: ${counted(product.length)}${away}`, false, ...product));
  const one = filtered ? (chosen === null ? ", none chosen" : `, number ${chosen} chosen`) : "";
  made.push(folded(`The user's history: ${several(history.length, "review")}${one}`, false, ...history));
  return made;
}

async function versionsOf(trace) {
  const made = [];
  for (const [at, version] of trace.versions.entries()) {
    const kept = at + 1 === trace.kept;
    const score = version.score === null ? "no score" : `score ${number(version.score, 1)}`;
    const title = make("h5", {}, `Version ${at + 1}: ${score}${change(version.changes)}${kept ? ", kept ★" : ""}`);
    const article = make("article", { className: kept ? "turn kept" : "turn" }, title);
    if (version.summary !== null) article.append(await told(version.summary, version.before, version.changes));
    if (version.failed !== null) article.append(because(await textOf(version.failed)));
    made.push(article);
  }
  const kept = trace.kept === null ? "none kept" : `version ${trace.kept} kept`;
  return folded(`Rewritings: ${several(trace.versions.length, "version")}, ${kept}`, true, ...made);
}

// Of a rewriting that changes nothing no judge is asked.
function stoodOf(round) {
  if (round.summary !== null && round.summary === round.before) return "the rewriting changes nothing";
  const rather = round.preferred === null ? "no preference" : `the reader would rather have it with ${Number(number(100 * round.preferred, 2))}%`;
  return `${rather}, ${round.stands ? "stands ★" : "does not stand"}`;
}

// Under the personal judge: a suggestion, the rewriting that came of it, and whether the reader would rather have that.
async function roundsOf(trace) {
  const made = [];
  for (const [at, round] of trace.rounds.entries()) {
    const title = `Round ${at + 1}: ${stoodOf(round)}`;
    const parts = [];
    if (round.response) parts.push(make("article", { className: "turn user" }, make("h5", {}, "The user"), ...(await responseOf(round.response))));
    if (round.filtered) {
      const { removed, drawn, history, historyDrawn } = round.filtered;
      const chance = drawn.length ? ` (by chance: ${drawn.join(", ")})` : "";
      const past = history === null ? "none" : `number ${history}${historyDrawn ? ", by chance" : ""}`;
      parts.push(make("p", { className: "about" }, `Product reviews removed: ${removed.join(", ") || "none"}${chance} · of the history: ${past}`));
      if (round.filtered.failed !== null) parts.push(because(await textOf(round.filtered.failed)));
    }
    if (round.summary !== null) {
      const gap = round.gap === null ? "" : `, order gap ${number(round.gap, 2)}`;
      const rewriting = make("article", { className: round.stands ? "turn kept" : "turn" }, make("h5", {}, `Rewriting${change(round.changes)}${gap}`));
      rewriting.append(await told(round.summary, round.before, round.changes));
      parts.push(rewriting);
    }
    if (round.failed !== null) parts.push(because(await textOf(round.failed)));
    made.push(folded(title, true, ...parts));
  }
  const stood = trace.rounds.filter((round) => round.stands).length;
  return folded(`The personal judge: ${several(trace.rounds.length, "round")}, ${counted(stood)} stood`, true, ...made);
}

function scoresOf(method, sample, scores) {
  const made = [`average ${number(head.runs[method].average[sample], 1)}`];
  if (scores) made.push(...head.measures.map((name, at) => `${name} ${number(scores[at], 1)}`));
  return made.join(" · ");
}

async function summaryOf(method, sample, trace) {
  const card = make("article", { className: "card" }, make("h4", {}, `The summary: ${head.methods[method].name}`));
  if (!trace) {
    card.append(make("p", {}, "This method was not run for this sample."));
    return card;
  }
  card.append(make("p", { className: "about" }, scoresOf(method, sample, trace.scores)));
  if (trace.summary !== null) card.append(await words(trace.summary));
  if (trace.failed !== null) card.append(because(await textOf(trace.failed)));
  return card;
}

async function everyMethod(sample, detail, again) {
  const made = [];
  for (const [method, trace] of detail.traces.entries()) {
    const button = make("button", { type: "button", className: "opens" }, head.methods[method].name);
    button.addEventListener("click", async () => {
      await again(method);
      byId("opened-title").focus();
    });
    const run = head.runs[method];
    const about = `: average ${number(run.average[sample], 1)}, user ${number(run.user[sample], 1)}`;
    const summary = trace && trace.summary !== null ? await words(trace.summary) : make("p", { className: "about" }, "No summary.");
    made.push(make("article", { className: "turn" }, make("h5", {}, button, about), summary));
  }
  return folded("The summaries of all methods", false, ...made);
}

function choiceOf(method, again) {
  const select = make("select", { name: "story-method" });
  head.methods.forEach((one, at) => select.append(make("option", { value: String(at), selected: at === method }, one.name)));
  select.addEventListener("change", async () => {
    await again(Number(select.value));
    byId("opened").querySelector("[name=story-method]").focus();
  });
  return make("p", { className: "filters" }, make("label", {}, "Method ", select));
}

async function contentsOf(sample, method, again) {
  const detail = await detailOf(sample);
  const trace = detail.traces[method];
  const about = make("p", { className: "about" });
  for (const [name, value] of [["reader", head.reader[sample]], ["product", head.item[sample]], ["", head.category[sample]], ["", head.group[sample]]]) {
    about.append(about.childNodes.length ? " · " : "", name ? `${name} ` : "", make("bdi", {}, value));
  }
  const own = make("article", { className: "card truth" }, make("h4", {}, "The user's own review of the product"));
  own.append(make("p", { className: "about" }, `${detail.own.score} of 5 stars · no writer is shown it`), await words(detail.own.text));
  const steps = [];
  if (trace && trace.analysis !== null) steps.push(folded("What the user cares about", true, await words(trace.analysis)));
  if (trace && trace.general !== null) steps.push(folded("General summary", true, await words(trace.general)));
  if (trace && trace.practice.length) steps.push(await practiceOf(trace));
  if (trace && trace.suggestions) steps.push(folded(`Suggestions: ${cameOf(trace.suggestions)}`, true, ...(await turnsOf(trace.suggestions))));
  steps.push(...(await reviewsOf(detail, trace ? trace.filtered : null)));
  if (trace && trace.versions.length) steps.push(await versionsOf(trace));
  else if (trace && trace.rounds.length) steps.push(await roundsOf(trace));
  else if (trace && trace.changes !== null && trace.general !== trace.summary) {
    steps.push(folded(`What changed from the general summary${change(trace.changes)}`, true, await told(trace.summary, trace.general, trace.changes)));
  }
  return [
    about,
    choiceOf(method, again),
    make("div", { className: "cards" }, own, await summaryOf(method, sample, trace)),
    make("section", { className: "story", "aria-label": "How it came about" }, ...steps),
    await everyMethod(sample, detail, again),
  ];
}
