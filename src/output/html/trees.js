/* SPDX-License-Identifier: Apache-2.0 */
/* trees.js - trees of calls: of a selection's stacks, with their weights.  Touches no
 * document. */

/* Number nodes again in preorder, the heaviest child first: node 0 is the root,
 * a node's descendants are those up to end[node], leaf[stack] is the stack's node. */
function inPreorder(parent, frame, weight, leaf) {
  const n = parent.length, child = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1);
  const total = Float64Array.from(weight), order = new Int32Array(n).keys();
  const tree = {
    n, parent: new Int32Array(n), frame: new Int32Array(n), depth: new Int32Array(n),
    end: new Int32Array(n), first: new Uint8Array(n), leaf: null,
  };
  const place = new Int32Array(n), stack = [0];
  let at = 0;

  for (let i = n - 1; i > 0; i--)
    total[parent[i]] += total[i];
  /* The lightest is linked first, so that the heaviest comes to the front. */
  for (const i of [...order].slice(1).sort((a, b) => total[a] - total[b] || b - a)) {
    next[i] = child[parent[i]];
    child[parent[i]] = i;
  }
  while (stack.length) {
    const i = stack.pop();
    if (next[i] >= 0)
      stack.push(next[i]);
    place[i] = at;
    tree.frame[at] = frame[i];
    tree.parent[at] = i ? place[parent[i]] : 0;
    tree.depth[at] = i ? tree.depth[tree.parent[at]] + 1 : 0;
    at++;
    if (child[i] >= 0)
      stack.push(child[i]);
  }
  for (let i = n - 1; i >= 0; i--) {
    tree.end[i] = Math.max(tree.end[i], i + 1);
    if (i)
      tree.end[tree.parent[i]] = Math.max(tree.end[tree.parent[i]], tree.end[i]);
  }
  tree.leaf = leaf.map((i) => (i < 0 ? -1 : place[i]));
  markFirst(tree);
  return tree;
}

/* first[node] = 1: no caller of it is the same function. */
function markFirst(tree) {
  const open = new Map(), path = [];

  for (let i = 1; i < tree.n; i++) {
    while (path.length >= tree.depth[i])
      open.set(path[path.length - 1], open.get(path.pop()) - 1);
    const f = tree.frame[i], count = open.get(f) || 0;
    tree.first[i] = count === 0;
    open.set(f, count + 1);
    path.push(f);
  }
}

function sums(p, weights) {
  const n = p.cats.length, all = new Float64Array(p.stackNode.length);

  for (let i = 0; i < weights.length; i++)
    all[Math.floor(i / n)] += weights[i];
  return all;
}

/* The tree of all calls, callers first. */
export function callTree(p, weights) {
  const weight = new Float64Array(p.parent.length), all = sums(p, weights);

  p.stackNode.forEach((node, s) => { weight[node] += all[s]; });
  return inPreorder(p.parent, p.frame, weight, p.stackNode);
}

/* The frames of the stack whose leaf is NODE, innermost first. */
export function framesOf(p, node) {
  const frames = [];

  for (; node > 0; node = p.parent[node])
    frames.push(p.frame[node]);
  return frames;
}

/* A tree of the paths that PATH makes of stacks' frames (innermost first); null: the
 * stack has no part in it. */
export function pathTree(p, weights, path) {
  const parent = [0], frame = [-1], weight = [0], edges = new Map(), all = sums(p, weights);
  const leaf = new Int32Array(p.stackNode.length).fill(-1), nframes = p.frames.length + 1;

  all.forEach((w, s) => {
    const frames = w > 0 ? path(framesOf(p, p.stackNode[s])) : null;
    let at = 0;
    if (!frames)
      return;
    for (const f of frames) {
      const key = at * nframes + f;
      let to = edges.get(key);
      if (to === undefined) {
        to = parent.length;
        edges.set(key, to);
        parent.push(at);
        frame.push(f);
        weight.push(0);
      }
      at = to;
    }
    weight[at] += w;
    leaf[s] = at;
  });
  return inPreorder(parent, frame, weight, leaf);
}

/* Callees before callers. */
export const callersTree = (p, weights) => pathTree(p, weights, (frames) => frames);

/* What frame F calls, or with UP who calls it. */
export function focusTree(p, weights, f, up) {
  return pathTree(p, weights, (frames) => {
    const at = frames.lastIndexOf(f);
    if (at < 0)
      return null;
    return up ? frames.slice(at) : frames.slice(0, at + 1).reverse();
  });
}

/* Sums of the nodes of TREE: total[node], self[node], mix[node * ncats + cat]. */
export function weigh(p, tree, weights) {
  const n = p.cats.length, total = new Float64Array(tree.n), self = new Float64Array(tree.n);
  const mix = new Float32Array(tree.n * n);

  for (let s = 0; s < tree.leaf.length; s++) {
    const node = tree.leaf[s];
    if (node < 0)
      continue;
    for (let c = 0; c < n; c++) {
      const w = weights[s * n + c];
      self[node] += w;
      mix[node * n + c] += w;
    }
  }
  total.set(self);
  for (let i = tree.n - 1; i > 0; i--) {
    const up = tree.parent[i];
    if (!total[i])
      continue;
    total[up] += total[i];
    for (let c = 0; c < n; c++)
      mix[up * n + c] += mix[i * n + c];
  }
  return { total, self, mix };
}

/* Rectangles of the nodes below ZOOM that are LEAST wide, 1 being all: calls
 * EACH(node, x, width, depth). */
export function layout(tree, total, zoom, least, each) {
  const x = new Float64Array(1024), base = tree.depth[zoom], scale = total[zoom] ? 1 / total[zoom] : 0;
  let at = x;

  for (let i = zoom; i < tree.end[zoom];) {
    const d = tree.depth[i] - base, w = total[i] * scale;
    if (d + 1 >= at.length) {
      const more = new Float64Array(2 * at.length);
      more.set(at);
      at = more;
    }
    const left = at[d];
    at[d] += w;
    if (w < least) {
      i = tree.end[i];
      continue;
    }
    at[d + 1] = left;
    each(i, left, w, d);
    i++;
  }
}

/* By function: [{frame, self, total, running, waiting}], most time first.  A function
 * that calls itself counts once. */
export function functions(p, tree, sum) {
  const n = p.cats.length, rows = p.frames.map((f, frame) => ({ frame, self: 0, total: 0, running: 0, waiting: 0 }));
  const running = p.cats.indexOf('running');

  for (let i = 1; i < tree.n; i++) {
    const row = rows[tree.frame[i]];
    row.self += sum.self[i];
    if (!tree.first[i])
      continue;
    row.total += sum.total[i];
    if (running >= 0)
      row.running += sum.mix[i * n + running];
    for (let c = 0; c < n; c++)
      if (p.cats[c].startsWith('waiting'))
        row.waiting += sum.mix[i * n + c];
  }
  return rows.filter((r) => r.total > 0).sort((a, b) => b.self - a.self || b.total - a.total);
}

/* The share of the tree that is below frames for which MATCH[frame]. */
export function matched(tree, total, match) {
  let sum = 0;

  for (let i = 0; i < tree.n;) {
    if (tree.frame[i] >= 0 && match[tree.frame[i]]) {
      sum += total[i];
      i = tree.end[i];
    } else {
      i++;
    }
  }
  return total[0] ? sum / total[0] : 0;
}
