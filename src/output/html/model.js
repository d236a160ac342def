/* SPDX-License-Identifier: Apache-2.0 */
/* model.js - what a page knows: the profile, a selection of it.  Touches no document. */

import { framesOf } from './trees.js';

/* Bits of a frame's flags, as in html_data.c. */
export const KERNEL = 1, TEXT = 2, OWN = 4, MACHINERY = 8, GUESSED = 16;

/* Read the LEB128 numbers of BYTES from AT on. */
export function numbers(bytes, at) {
  return () => {
    let n = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      n += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return n;
  };
}

/* "waiting: poll", "running": what rows are coloured and filtered by. */
export function catName(state, wait, syscall) {
  if (state !== 'waiting')
    return state;
  return 'waiting: ' + (wait === 'syscall' && syscall ? syscall : wait || 'unknown');
}

const ORDER = ['running', 'runnable', 'waiting: lock', 'waiting: condvar', 'waiting: futex'];

/* Most different categories that are told apart. */
const CATS = 24;

function readKinds(p, kinds) {
  const rank = (c) => (ORDER.indexOf(c) + 1 || ORDER.length + 1);
  const name = kinds.map((k) => catName(p.states[k[0]], k[1], k[2]));
  const all = [...new Set(name)].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));

  p.cats = all.length > CATS ? [...all.slice(0, CATS - 1), 'waiting: other'] : all;
  p.kinds = kinds.map((k, i) => ({
    state: p.states[k[0]], wait: k[1], object: k[3], holder: k[4] - 1, name: name[i],
    cat: Math.min(p.cats.length - 1, all.indexOf(name[i])), ready: k[0] < 2,
  }));
}

/* The name of a thread, with that of its process if several were recorded. */
function titleOf(t) {
  const name = t[2] || '[no name]';

  return !t[12] || t[12] === name ? name : t[12] + ': ' + name;
}

/* Has thread T, an entry, samples?  What Go's runtime did is of no goroutine that counts. */
export function isListed(t) {
  return t.count || t.total;
}

/* One thread: rows [0..n), of which time[i]..time[i + 1] is the time of row I (of
 * sums: nothing but its length).  It stands for COUNT threads that have samples. */
function readThread(p, t, read, deeds) {
  const n = t[5], thread = {
    tid: t[0], count: t[1], name: titleOf(t), program: t[12] || '', process: t[12] ? t[12] + ' ' + t[11] : '', timed: !!t[4], n, idle: !!t[6],
    stack: new Int32Array(n), kind: new (p.kinds.length < 65535 ? Uint16Array : Uint32Array)(n),
    time: new Float64Array(n + 1),
    /* How many samples divided its waits and the time that it was ready to run; by
     * stack, waits that are known exactly, or variances of bytes that were sampled. */
    looks: [t[7] || 0, t[8] || 0], exact: new Map(),
  };

  for (let i = 0; i < n; i++)
    thread.stack[i] = read();
  for (let i = 0; i < n; i++) {
    const deed = thread.stack[i] + 128 * read();
    thread.stack[i] = deeds.stack[deed];
    thread.kind[i] = deeds.kind[deed];
  }
  thread.time[0] = thread.timed ? t[3] : 0;
  for (let i = 0, units = 0; i < n; i++) {
    units += read();
    thread.time[i + 1] = thread.time[0] + units * p.quantum;
  }
  return thread;
}

/* The profile of BYTES, which html_data.c wrote. */
export function decode(bytes) {
  const end = bytes.indexOf(10);
  const p = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const read = numbers(bytes, end + 1), n = p.nodes, ids = new Int32Array(n + 1).fill(-1);
  const nodes = [];

  p.frames = p.frames.map((f) => ({ name: f[0], file: f[1], module: f[2], line: f[3], flags: f[4] }));
  /* Node 0 is the root of all; nodes count from 1. */
  p.parent = new Int32Array(n + 1);
  p.frame = new Int32Array(n + 1).fill(-1);
  for (let i = 1; i <= n; i++) {
    p.parent[i] = i - read();
    p.frame[i] = read();
  }
  readKinds(p, p.kinds);
  const stackOf = (node) => {
    if (ids[node] < 0)
      ids[node] = nodes.push(node) - 1;
    return ids[node];
  };
  const deeds = { stack: new Int32Array(p.deeds), kind: new Int32Array(p.deeds) };
  for (let i = 0; i < p.deeds; i++) {
    deeds.stack[i] = stackOf(read());
    deeds.kind[i] = read();
  }
  const exact = p.threads.map((t) => t[9] || 0);
  p.threads = p.threads.map((t) => readThread(p, t, read, deeds));
  p.threads.forEach((t, i) => {
    for (let k = 0; k < exact[i]; k++) {
      const stack = stackOf(read());
      t.exact.set(stack, (t.exact.get(stack) || 0) + read() * p.quantum);
    }
  });
  /* stackNode[s]: the leaf of stack S. */
  p.stackNode = Int32Array.from(nodes);
  p.threads.forEach((t, i) => describe(p, t, i));
  p.begin = 0;
  /* Not Math.max(...): a call takes some 120,000 arguments. */
  p.end = p.threads.reduce((end, t) => Math.max(end, t.timed ? t.time[t.n] : 0), Math.max(p.duration_ns, 1));
  p.hasTime = p.threads.some((t) => t.timed);
  return p;
}

/* Sum a thread up: time by category. */
function describe(p, t, index) {
  t.index = index;
  t.group = t.name.replace(/\d+/g, '*');
  t.sums = new Float64Array(p.cats.length);
  t.total = 0;
  for (let i = 0; i < t.n; i++) {
    const ns = t.time[i + 1] - t.time[i], kind = p.kinds[t.kind[i] - 1];
    if (!kind)
      continue;
    t.sums[kind.cat] += ns;
    t.total += ns;
  }
  /* By what lanes are sorted. */
  t.active = t.sums.reduce((sum, ns, c) => (p.cats[c].startsWith('waiting') ? sum : sum + ns), 0);
}

/* The index of the row of T at TIME; -1: none. */
export function rowAt(t, time) {
  let low = 0, high = t.n - 1;

  if (!t.timed || !t.n || time < t.time[0] || time >= t.time[t.n])
    return -1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (t.time[mid] <= time)
      low = mid;
    else
      high = mid - 1;
  }
  return low;
}

/* Call EACH(stack, kind, ns) for what T did in RANGE [t0, t1); in all of its time if
 * that is null.  Threads without times have no part of a range. */
export function eachRow(p, t, range, each) {
  const { time, kind, stack } = t, [t0, t1] = range || [-Infinity, Infinity];
  let i = 0;

  if (range && (!t.timed || !t.n || time[t.n] <= t0))
    return;
  if (range)
    i = Math.max(0, rowAt(t, t0));
  for (; i < t.n; i++) {
    const from = time[i], to = time[i + 1];
    if (range && from >= t1)
      break;
    if (kind[i])
      each(stack[i], p.kinds[kind[i] - 1], range ? Math.min(to, t1) - Math.max(from, t0) : to - from);
  }
}

/* Add what T did in RANGE to WEIGHTS[stack * ncats + cat].  Was it there? */
export function addThread(p, t, range, weights) {
  const n = p.cats.length;
  let was = !range;

  eachRow(p, t, range, (stack, kind, ns) => {
    weights[stack * n + kind.cat] += ns;
    was = true;
  });
  return was;
}

/* The weights of SELECTION {range, threads (Set of indices; null: all), off (Set of
 * categories), hideIdle}: {weights, of (SELECTION), cats (sums by category, filtered or
 * not), total, hidden}. */
export function select(p, selection) {
  const n = p.cats.length, weights = new Float64Array(p.stackNode.length * n);
  const result = { weights, of: { ...selection }, cats: new Float64Array(n), total: 0, hidden: 0, idle: 0, threads: 0 };
  const idle = new Float64Array(selection.hideIdle ? weights.length : 0);

  for (const t of p.threads) {
    if (selection.threads && !selection.threads.has(t.index))
      continue;
    if (!addThread(p, t, selection.range, selection.hideIdle && t.idle ? idle : weights))
      continue;
    result.idle += t.idle ? t.count : 0;
    result.threads += t.count;
  }
  for (const ns of idle)
    result.hidden += ns;
  for (let i = 0; i < weights.length; i++) {
    const cat = i % n;
    result.cats[cat] += weights[i];
    if (selection.off.has(cat))
      weights[i] = 0;
    result.total += weights[i];
  }
  return result;
}

/* The place of a wait: the innermost frame that is not waiting machinery. */
export function siteOf(p, node) {
  const frames = framesOf(p, node);

  return frames.find((f) => !(p.frames[f].flags & (MACHINERY | KERNEL | TEXT))) ?? frames[0] ?? -1;
}

/* The waits of SELECTION's weights by site: [{cat, frame, ns}], longest first. */
export function waits(p, weights) {
  const n = p.cats.length, sites = new Map();

  for (let s = 0; s < p.stackNode.length; s++) {
    for (let cat = 0; cat < n; cat++) {
      const ns = weights[s * n + cat];
      if (!ns || !p.cats[cat].startsWith('waiting'))
        continue;
      const frame = siteOf(p, p.stackNode[s]), key = cat + ':' + frame;
      const row = sites.get(key) || { cat, frame, ns: 0 };
      row.ns += ns;
      sites.set(key, row);
    }
  }
  return [...sites.values()].sort((a, b) => b.ns - a.ns);
}

/* Who waits for whom at the end: [{from, to, object}], indices of threads. */
export function waitEdges(p) {
  return p.threads.flatMap((t) => {
    const kind = t.timed && t.n ? p.kinds[t.kind[t.n - 1] - 1] : null;
    return kind && kind.holder >= 0 ? [{ from: t.index, to: kind.holder, object: kind.object }] : [];
  });
}

/* A cycle of EDGES as a list of edges; null: there is none. */
export function cycleOf(edges) {
  const out = new Map(edges.map((e) => [e.from, e]));
  /* By edge, the first of the walk that has met it. */
  const met = new Map();

  for (const edge of edges) {
    const path = [];
    let e = edge;
    while (e && !met.has(e)) {
      met.set(e, edge);
      path.push(e);
      e = out.get(e.to);
    }
    if (e && met.get(e) === edge)
      return path.slice(path.indexOf(e));
  }
  return null;
}

/* Fractions of each of WIDTH columns of T0..T1 that T spent in each category:
 * x[column * ncats + cat]. */
export function density(p, t, t0, t1, width) {
  const n = p.cats.length, x = new Float32Array(width * n), scale = width / (t1 - t0);

  if (!t.timed || !t.n || t.time[t.n] <= t0 || t.time[0] >= t1)
    return x;
  for (let i = Math.max(0, rowAt(t, t0)); i < t.n && t.time[i] < t1; i++) {
    if (!t.kind[i])
      continue;
    const cat = p.kinds[t.kind[i] - 1].cat;
    const a = Math.max(0, (t.time[i] - t0) * scale), b = Math.min(width, (t.time[i + 1] - t0) * scale);
    for (let col = Math.floor(a); col < b; col++)
      x[col * n + cat] += Math.min(b, col + 1) - Math.max(a, col);
  }
  return x;
}

/* How many threads at once were in each of SERIES (functions of a category's name),
 * by column: x[series][column]. */
export function crowd(p, series, t0, t1, width) {
  const of = p.cats.map((c) => series.findIndex((f) => f(c)));
  /* Of an interval, its ends are added here, and what lies between by steps. */
  const x = series.map(() => new Float64Array(width)), step = series.map(() => new Float64Array(width + 1));
  const scale = width / (t1 - t0);

  for (const t of p.threads) {
    if (!t.timed || !t.n || t.time[t.n] <= t0)
      continue;
    for (let i = Math.max(0, rowAt(t, t0)); i < t.n && t.time[i] < t1; i++) {
      const s = t.kind[i] ? of[p.kinds[t.kind[i] - 1].cat] : -1;
      if (s < 0)
        continue;
      const a = Math.max(0, (t.time[i] - t0) * scale), b = Math.min(width, (t.time[i + 1] - t0) * scale);
      const from = Math.floor(a), to = Math.min(width - 1, Math.floor(b));
      if (from >= to) {
        x[s][Math.min(from, width - 1)] += b - a;
        continue;
      }
      x[s][from] += from + 1 - a;
      x[s][to] += b - to;
      step[s][from + 1]++;
      step[s][to]--;
    }
  }
  x.forEach((column, s) => {
    for (let i = 0, sum = 0; i < width; i++) {
      sum += step[s][i];
      column[i] += sum;
    }
  });
  return x;
}

/* Give SIDES the same frames and nodes.  Functions are the same by name and module,
 * also those of one side: so does the text. */
function uniteNodes(sides) {
  const ids = new Map(), edges = new Map(), frames = [], parent = [0], frame = [-1];
  const most = sides.reduce((n, side) => n + side.frames.length, 0);

  for (const side of sides) {
    const toNode = [0], toFrame = side.frames.map((f) => {
      const key = f.name + '\0' + f.module;
      if (!ids.has(key))
        ids.set(key, frames.push(f) - 1);
      return ids.get(key);
    });
    for (let i = 1; i < side.parent.length; i++) {
      const up = toNode[side.parent[i]], f = toFrame[side.frame[i]], edge = up * most + f;
      if (!edges.has(edge)) {
        edges.set(edge, parent.push(up) - 1);
        frame.push(f);
      }
      toNode.push(edges.get(edge));
    }
    side.stackNode = side.stackNode.map((node) => toNode[node]);
  }
  const parents = Int32Array.from(parent), of = Int32Array.from(frame);
  for (const side of sides)
    Object.assign(side, { frames, parent: parents, frame: of });
}

/* Make the frames, nodes, stacks and categories of P and BASE the same. */
export function unite(p, base) {
  const cats = [...new Set([...p.cats, ...base.cats])];

  uniteNodes([p, base]);
  for (const side of [p, base]) {
    side.kinds.forEach((k) => { k.cat = cats.indexOf(side.cats[k.cat]); });
    side.cats = cats;
    side.threads.forEach((t, i) => describe(side, t, i));
  }
  /* Both have the same stacks, numbered alike. */
  const ids = new Map(), all = [];
  for (const side of [p, base]) {
    const renumber = Array.from(side.stackNode, (node) => {
      if (!ids.has(node))
        ids.set(node, all.push(node) - 1);
      return ids.get(node);
    });
    for (const t of side.threads) {
      t.stack = t.stack.map((s) => renumber[s]);
      const exact = [...t.exact];
      t.exact = new Map();
      for (const [s, ns] of exact)
        t.exact.set(renumber[s], (t.exact.get(renumber[s]) || 0) + ns);
    }
  }
  p.stackNode = base.stackNode = Int32Array.from(all);
}

/* A time as a person writes it, of three digits or so. */
export function duration(ns) {
  const abs = Math.abs(ns);
  const [unit, name] = abs >= 1e9 ? [1e9, 's'] : abs >= 1e6 ? [1e6, 'ms'] : abs >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
  const v = ns / unit;

  return (abs < 1e3 ? v.toFixed(0) : Math.abs(v) >= 99.95 ? v.toFixed(0) : Math.abs(v) >= 9.995 ? v.toFixed(1) : v.toFixed(2)) + ' ' + name;
}

/* A value of the profile's unit. */
export function amount(p, v) {
  if (p.unit === 'nanoseconds')
    return duration(v);
  if (p.unit === 'bytes') {
    const abs = Math.abs(v);
    return abs >= 1 << 30 ? (v / (1 << 30)).toFixed(2) + ' GiB' : abs >= 1 << 20 ? (v / (1 << 20)).toFixed(1) + ' MiB' :
      abs >= 1024 ? (v / 1024).toFixed(1) + ' KiB' : Math.round(v) + ' B';
  }
  return Math.round(v).toLocaleString('en') + (p.unit && p.unit !== 'count' ? ' ' + p.unit : '');
}

export function percent(part, all) {
  const v = all ? 100 * part / all : 0;

  return (v === 0 || v >= 9.95 ? v.toFixed(v >= 99.95 || v === 0 ? 0 : 1) : v.toFixed(v < 0.995 ? 2 : 1)) + ' %';
}
