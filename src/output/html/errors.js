/* SPDX-License-Identifier: Apache-2.0 */
/* errors.js - standard errors of functions' times, as src/output/errors.h says: a
 * thread's time in a state is known, samples divide it.  Touches no document. */
import { amount, eachRow } from './model.js';

const WAITS = 0, READY = 1, PARTS = 2;

/* The part of T's waits in STACK that samples divide, from 0 to 1: what is known
 * exactly has no error.  Of a range of time it is taken to be the same part. */
function dividedParts(p, t) {
  const whole = new Map(), parts = new Map();

  if (t.exact.size)
    eachRow(p, t, null, (stack, kind, ns) => {
      if (!kind.ready && t.exact.has(stack))
        whole.set(stack, (whole.get(stack) || 0) + ns);
    });
  for (const [stack, ns] of whole)
    parts.set(stack, Math.max(0, 1 - t.exact.get(stack) / ns));
  return parts;
}

/* What samples divide of T's time in RANGE: the sum of each part is returned; ADD is
 * called with (stack, part, ns, cat). */
function divide(p, t, range, add) {
  const pool = [0, 0], parts = t.divided ||= dividedParts(p, t);

  eachRow(p, t, range, (stack, kind, ns) => {
    const part = kind.ready ? READY : WAITS, divided = parts.size && part === WAITS && parts.has(stack) ? ns * parts.get(stack) : ns;
    pool[part] += divided;
    add(stack, part, divided, kind.cat);
  });
  return pool;
}

/* The variance of NS of POOL ns, which LOOKS samples divide (Agresti and Coull). */
export function variance(looks, ns, pool) {
  const n = looks + 4, q = (looks * ns / pool + 2) / n;

  return looks > 0 && ns > 0 ? pool * pool * q * (1 - q) / n : 0;
}

/* Add the variances of what one thread has of functions: SHOWN[stack * PARTS + part]
 * of the stacks TOUCHED.  ROWS has 2 * PARTS numbers for each frame, all 0. */
function addVariances(tree, shown, touched, pool, looks, rows, sums) {
  const frames = [], n = 2 * PARTS;
  const add = (frame, stack, at) => {
    if (!rows[n * frame + PARTS] && !rows[n * frame + PARTS + 1])
      frames.push(frame);
    rows[n * frame + at] += shown[stack * PARTS];
    rows[n * frame + at + 1] += shown[stack * PARTS + 1];
  };

  for (const stack of touched) {
    eachFunction(tree, stack, (frame, key) => add(frame, stack, key === 'self' ? 0 : PARTS));
    shown[stack * PARTS] = shown[stack * PARTS + 1] = 0;
  }
  for (const frame of frames) {
    for (let part = 0; part < PARTS; part++) {
      sums.self[frame] += variance(looks[part], rows[n * frame + part], pool[part]);
      sums.total[frame] += variance(looks[part], rows[n * frame + PARTS + part], pool[part]);
    }
    rows.fill(0, n * frame, n * frame + n);
  }
}

/* Call ADD with (frame, key) for each function of STACK, itself ("self") and with what it
 * calls ("total"). */
function eachFunction(tree, stack, add) {
  const leaf = tree.leaf[stack];

  for (let node = leaf; node > 0; node = tree.parent[node])
    if (tree.first[node])
      add(tree.frame[node], 'total');
  if (leaf > 0)
    add(tree.frame[leaf], 'self');
}

/* Of bytes that were sampled: errors.h has the formula of shares.  {self, total} are
 * those of the bytes, SHARE has those of them as a part of all. */
function sampledErrors(p, tree, { threads, off, hideIdle }) {
  const zeros = () => ({ self: new Float64Array(p.frames.length), total: new Float64Array(p.frames.length) });
  const bytes = zeros(), variances = zeros(), share = zeros();
  let all = 0, allVariance = 0;

  for (const t of p.threads) {
    if ((threads && !threads.has(t.index)) || (hideIdle && t.idle))
      continue;
    eachRow(p, t, null, (stack, kind, n) => {
      if (off.has(kind.cat))
        return;
      all += n;
      eachFunction(tree, stack, (frame, key) => { bytes[key][frame] += n; });
    });
    for (const [stack, units] of t.exact) {
      allVariance += units * p.bytes_per_sample;
      eachFunction(tree, stack, (frame, key) => { variances[key][frame] += units * p.bytes_per_sample; });
    }
  }
  const enlarge = (v, s) => v + 2 * (s > 0 ? v / s : allVariance / all) ** 2;
  for (const key of ['self', 'total'])
    bytes[key].forEach((s, f) => {
      const v = variances[key][f], r = s / all;
      if (s > 0)
        share[key][f] = Math.sqrt((1 - r) ** 2 * enlarge(v, s) + r ** 2 * enlarge(Math.max(0, allVariance - v), all - s));
      variances[key][f] = s > 0 ? Math.sqrt(enlarge(v, s)) : 0;
    });
  return allVariance ? { ...variances, share } : null;
}

function findErrors(p, tree, selection) {
  const sums = { self: new Float64Array(p.frames.length), total: new Float64Array(p.frames.length) };
  const shown = new Float64Array(p.stackNode.length * PARTS), rows = new Float64Array(2 * PARTS * p.frames.length);
  const { range, threads, off, hideIdle } = selection;

  if (p.bytes_per_sample)
    return sampledErrors(p, tree, selection);
  if (!p.threads.some((t) => t.looks[WAITS] || t.looks[READY]))
    return null;
  for (const t of p.threads) {
    const touched = [];
    if ((threads && !threads.has(t.index)) || (hideIdle && t.idle))
      continue;
    const pool = divide(p, t, range, (stack, part, ns, cat) => {
      if (off.has(cat) || !(ns > 0))
        return;
      if (!shown[stack * PARTS] && !shown[stack * PARTS + 1])
        touched.push(stack);
      shown[stack * PARTS + part] += ns;
    });
    /* Samples come evenly: a part of the time has that part of them. */
    t.pool ||= range ? divide(p, t, null, () => {}) : pool;
    addVariances(tree, shown, touched, pool, t.looks.map((n, part) => (t.pool[part] ? n * pool[part] / t.pool[part] : 0)), rows, sums);
  }
  return { self: sums.self.map(Math.sqrt), total: sums.total.map(Math.sqrt) };
}

const errorsOf = new WeakMap();

/* Standard errors of what functions have in SELECTION of P's threads, TREE being of
 * all calls: {self, total}, by frame in the profile's unit, and SHARE, the same of a part
 * of all where that differs.  null: it is not known by how many samples time was
 * divided. */
export function functionErrors(p, tree, selection) {
  if (!errorsOf.has(selection))
    errorsOf.set(selection, findErrors(p, tree, selection));
  return errorsOf.get(selection);
}

/* "±0.3": ERROR as a part of ALL in points; '': too small to say. */
export function points(error, all) {
  const v = all ? 100 * error / all : 0;

  return v < 0.05 ? '' : '±' + v.toFixed(v < 9.95 ? 1 : 0);
}

/* "±12 ms", and a star for a CHANGE that is beyond chance; '': no error. */
export function beside(p, error, change) {
  return error >= 1 ? ' ±' + amount(p, error) + (Math.abs(change) > SURE * error ? ' *' : '') : '';
}

/* The errors of a change that are beyond chance, as in diff.c. */
const SURE = 3;
