// What a search found, marked in what was opened, and unfolded.

function markFound(elements, words) {
  const wanted = words.toLowerCase();
  if (!wanted) return;
  for (const element of elements) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) if (walker.currentNode.parentElement.closest(".text")) nodes.push(walker.currentNode);
    for (const node of nodes) markIn(node, wanted);
  }
}

// A letter that is longer when it is small would shift what is marked; such a text is left as it is.
function markIn(node, wanted) {
  const text = node.textContent;
  const small = text.toLowerCase();
  if (small.length !== text.length || !small.includes(wanted)) return;
  const pieces = [];
  let done = 0;
  for (let at = small.indexOf(wanted); at >= 0; at = small.indexOf(wanted, done)) {
    pieces.push(text.slice(done, at), make("mark", {}, text.slice(at, at + wanted.length)));
    done = at + wanted.length;
  }
  for (let place = node.parentElement.closest("details"); place; place = place.parentElement?.closest("details")) place.open = true;
  node.replaceWith(...pieces, text.slice(done));
}
