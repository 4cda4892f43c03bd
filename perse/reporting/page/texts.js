// The packed texts and details: unpacked a chunk at a time when somebody looks, and kept.

const head = JSON.parse(byId("samples-data").textContent);

async function unpack(element) {
  const packed = atob(element.textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function chunks(name) {
  const elements = document.getElementsByClassName(name);
  const known = new Map();
  return {
    count: elements.length,
    get(place) {
      if (!known.has(place)) known.set(place, unpack(elements[place]));
      return known.get(place);
    },
  };
}

const textChunks = chunks("texts-chunk");
const itemChunks = chunks("items-chunk");

function chunkOf(text) {
  let low = 0;
  let high = head.textStarts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (head.textStarts[middle] <= text) low = middle;
    else high = middle - 1;
  }
  return low;
}

async function textOf(text) {
  if (text === null || text === undefined) return "";
  const place = chunkOf(text);
  return (await textChunks.get(place))[text - head.textStarts[place]];
}

async function detailOf(sample) {
  const chunk = await itemChunks.get(Math.floor(sample / head.itemChunk));
  return chunk[sample % head.itemChunk];
}

// Every text in small letters, and the texts of each sample by where they stand in it; `told` is told how far it is, 0 to 1.
async function everything(told) {
  const all = textChunks.count + itemChunks.count;
  const texts = [];
  for (let place = 0; place < textChunks.count; place++) {
    for (const text of await textChunks.get(place)) texts.push(text.toLowerCase());
    told(place / all);
  }
  const places = [];
  for (let place = 0; place < itemChunks.count; place++) {
    for (const detail of await itemChunks.get(place)) {
      places.push({
        query: detail.query.map((part) => part[1]),
        profile: detail.profile.flatMap((past) => past.parts.map((part) => part[1])),
        review: detail.review === null ? [] : [detail.review],
        answer: detail.answers.flatMap((answer) => (answer ? [answer.text, answer.error] : [])).filter((text) => text !== null),
      });
    }
    told((textChunks.count + place) / all);
  }
  return { texts, places };
}

let unpacked = null;

// The samples that hold `words`, as written, in the texts named by `where` ("": in all of them, the ids too).
async function found(words, where, told) {
  unpacked = unpacked || everything(told);
  const { texts, places } = await unpacked;
  const wanted = words.toLowerCase();
  const has = texts.map((text) => text.includes(wanted));
  const parts = where ? [where] : ["query", "review", "answer", "profile"];
  return places.map(
    (place, sample) =>
      parts.some((part) => place[part].some((text) => has[text])) ||
      (!where && (head.id[sample].toLowerCase().includes(wanted) || readerOf(sample).toLowerCase().includes(wanted))),
  );
}

function readerOf(sample) {
  return head.reviewers[head.reviewer[sample]];
}

function statusOf(judge, sample) {
  const status = head.answers[judge].status[sample];
  return status === null ? "not asked" : head.statuses[status];
}

// What the judge predicts: the expected score, or the choice; the label where there is no distribution; null if not answered.
function predicted(judge, sample) {
  const answers = head.answers[judge];
  if (answers.label[sample] === null) return null;
  const value = answers.value[sample];
  if (head.pairs) return value === null || value === 0.5 ? answers.label[sample] : value > 0.5 ? "A" : "B";
  return value === null ? Number(answers.label[sample]) : value;
}

// Distance to the reader's score; of a pair, the probability that was not given to the reader's choice.
function errorOf(judge, sample) {
  const gold = head.gold[sample];
  const answer = predicted(judge, sample);
  if (gold === null || answer === null) return null;
  if (!head.pairs) return Math.abs(answer - gold);
  const value = head.answers[judge].value[sample];
  if (value === null) return answer === gold ? 0 : 1;
  return gold === "A" ? 1 - value : value;
}
