/* SPDX-License-Identifier: Apache-2.0 */
/* compare.js - what a selection is compared with: another profile or another range of this
 * one, of the same threads.  Touches no document. */
import { isListed, select } from './model.js';

/* THREADS by name. */
function byName(threads) {
  const names = new Map();

  for (const t of threads) {
    if (!names.has(t.name))
      names.set(t.name, []);
    names.get(t.name).push(t);
  }
  return names;
}

const names = new WeakMap();

/* The threads of P with NAME that have samples. */
function threadsOf(p, name) {
  if (!names.has(p))
    names.set(p, byName(p.threads.filter(isListed)));
  return names.get(p).get(name) || [];
}

/* Indices of BASE's threads that P's THREADS were (a Set of indices; null: all): those of
 * the same names.  Of some threads of a name, those of the same tids; undefined: it is
 * not known which. */
export function sameThreads(p, base, threads) {
  const same = new Set();

  if (!threads)
    return null;
  for (const [name, chosen] of byName([...threads].map((i) => p.threads[i]))) {
    const tids = new Set(chosen.map((t) => t.tid)), all = threadsOf(p, name).every((t) => threads.has(t.index));
    const old = threadsOf(base, name).filter((t) => all || tids.has(t.tid));
    if (!all && (old.length !== chosen.length || new Set(old.map((t) => t.tid)).size !== chosen.length))
      return undefined;
    old.forEach((t) => same.add(t.index));
  }
  return same;
}

/* What is compared with the selection of THREADS: {profile, scale, selection}; null:
 * nothing, or it is not known which threads they were. */
export function beforeOf(app, threads) {
  const { p, base, state } = app, { off, hideIdle, before } = state;

  if (!base)
    return before ? { profile: p, scale: before[1] - before[0], selection: select(p, { range: before, threads, off, hideIdle }) } : null;
  const same = sameThreads(p, base, threads);
  return same === undefined ? null :
    { profile: base, scale: app.per === 'sums' ? 1e9 : base.duration_ns, selection: select(base, { range: null, threads: same, off, hideIdle }) };
}
