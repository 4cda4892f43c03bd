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

// Every text in small letters, and all details; `told` is told how far it is, 0 to 1.
async function everything(told) {
  const all = textChunks.count + itemChunks.count;
  const texts = [];
  for (let place = 0; place < textChunks.count; place++) {
    for (const text of await textChunks.get(place)) texts.push(text.toLowerCase());
    told(place / all);
  }
  const details = [];
  for (let place = 0; place < itemChunks.count; place++) {
    details.push(...(await itemChunks.get(place)));
    told((textChunks.count + place) / all);
  }
  return { texts, details };
}

let unpacked = null;

// Of each sample, whether `words`, as written, stand in one of the texts (by number) of its detail, or in one of its names.
async function found(words, told, textsOf, namesOf) {
  unpacked = unpacked || everything(told);
  const { texts, details } = await unpacked;
  const wanted = words.toLowerCase();
  const has = texts.map((text) => text.includes(wanted));
  return details.map(
    (detail, sample) => textsOf(detail).some((text) => has[text]) || namesOf(sample).some((name) => name.toLowerCase().includes(wanted)),
  );
}
