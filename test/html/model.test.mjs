// SPDX-License-Identifier: Apache-2.0
// What a page computes, on profiles whose numbers are known by heart.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as e from '../../src/output/html/errors.js';
import { sameThreads } from '../../src/output/html/compare.js';
import * as model from '../../src/output/html/model.js';
import * as trees from '../../src/output/html/trees.js';
import { readHash, writeHash } from '../../src/output/html/page.js';

const m = { ...model, ...trees };

function leb(n) {
  const out = [];
  for (; n > 127; n = Math.floor(n / 128))
    out.push(n % 128 | 128);
  return [...out, n];
}

/* The bytes of a profile: stacks are paths of frames' names, root first; threads are
   [name, start, timed, rows of [stack, [state, wait, object, holder], ns], idle, samples that
   divide waits and time ready to run, lists of [stack, ns of waits known exactly], how many
   threads it stands for]. */
function encode(threads, more = {}) {
  const states = ['running', 'runnable', 'waiting', 'stopped', 'exiting'];
  const frames = [], nodes = [], kinds = [], bytes = [];
  const indexOf = (list, item) => {
    const at = list.findIndex((x) => JSON.stringify(x) === JSON.stringify(item));
    return at < 0 ? list.push(item) - 1 : at;
  };
  const frameOf = (name) => indexOf(frames, name.startsWith('lib') ? [name, '', 'libc', 0, 8] : [name, '', 'exe', 0, 4]);
  const nodeOf = (stack) => stack.reduce((up, name) => indexOf(nodes, [up, frameOf(name)]) + 1, 0);
  const kindOf = (k) => (k ? indexOf(kinds, [states.indexOf(k[0]), k[1] || '', '', k[2] || '', k[3] || 0]) + 1 : 0);
  const tables = threads.map((t) => t[3].map(([stack, kind, ns]) => [nodeOf(stack), kindOf(kind), ns]));
  for (const [i, [up, frame]] of nodes.entries())
    bytes.push(...leb(i + 1 - up), ...leb(frame));
  const deeds = [];
  const ranks = tables.map((rows) => rows.map((r) => indexOf(deeds, r.slice(0, 2))));
  bytes.push(...deeds.flatMap((d) => [...leb(d[0]), ...leb(d[1])]));
  tables.forEach((rows, i) => bytes.push(...ranks[i].map((d) => d & 127), ...ranks[i].flatMap((d) => leb(d >> 7)), ...rows.flatMap((r) => leb(r[2]))));
  threads.forEach((t) => (t[6] || []).forEach(([stack, ns]) => bytes.push(...leb(nodeOf(stack)), ...leb(ns))));
  const head = {
    version: 1, pid: 1, quantum: 1, time_ms: 0, duration_ns: 100, period_ns: 10, hz: 100, window_ns: 0, wallprof: 'x', kind: 'wall',
    type: 'wall', unit: 'nanoseconds', command: 'c', exe: '/exe', target_end: '', counters: [], states, frames, kinds,
    threads: threads.map((t, i) => [i + 1, t[7] ?? 1, t[0], t[1], t[2] ? 1 : 0, t[3].length, t[4] ? 1 : 0, ...(t[5] || [0, 0]), (t[6] || []).length]),
    nodes: nodes.length, deeds: deeds.length, ...more,
  };
  return Uint8Array.from([...new TextEncoder().encode(JSON.stringify(head) + '\n'), ...bytes]);
}

const RUN = ['running'], LOCK = ['waiting', 'lock', '0x10', 2], POLL = ['waiting', 'poll', 'fd 1'];
const server = () => m.decode(encode([
  ['worker-1', 0, true, [[['main', 'work'], RUN, 30], [['main', 'work', 'libwait'], LOCK, 50], [['main', 'work'], RUN, 20]]],
  ['worker-2', 10, true, [[['main', 'work', 'work'], RUN, 40], [[], null, 10], [['main', 'work', 'libwait'], LOCK, 40]]],
  ['poller', 0, true, [[['main', 'libpoll'], POLL, 100]], true],
  ['old', 0, false, [[['main'], RUN, 7]]],
]));
const all = { range: null, threads: null, off: new Set(), hideIdle: false };
const total = (p, s) => m.select(p, { ...all, ...s }).total;

test('numbers of every length are read', () => {
  const values = [0, 1, 127, 128, 16384, 2 ** 31, 2 ** 40, 2 ** 52 + 1], read = m.numbers(Uint8Array.from(values.flatMap(leb)), 0);
  assert.deepEqual(values.map(() => read()), values);
});

test('rows have the times that were written', () => {
  const p = server(), t = p.threads[1];
  assert.deepEqual([...t.time], [10, 50, 60, 100]);
  assert.deepEqual(p.cats, ['running', 'waiting: lock', 'waiting: poll']);
  assert.deepEqual([0, 9, 10, 49, 50, 99, 100].map((ns) => m.rowAt(t, ns)), [-1, -1, 0, 0, 1, 2, -1]);
  assert.deepEqual(p.threads.map((x) => x.idle), [false, false, true, false]);
  assert.equal(p.end, 100);
});

test('a range of time is that range times its threads', () => {
  const p = server();
  assert.equal(total(p, {}), 100 + 80 + 100 + 7);
  assert.equal(total(p, { range: [0, 10] }), 20);
  assert.equal(total(p, { range: [20, 50] }), 90);
  assert.equal(total(p, { range: [50, 60] }), 20);
  assert.equal(total(p, { range: [20, 50], threads: new Set([0]) }), 30);
  assert.equal(total(p, { range: [25, 35], threads: new Set([0]), off: new Set([0]) }), 5);
  assert.equal(total(p, { range: [200, 300] }), 0);
});

test('idle threads are hidden, and how much is told', () => {
  const p = server(), s = m.select(p, { ...all, hideIdle: true });
  assert.equal(s.total, 187);
  assert.equal(s.hidden, 100);
  assert.equal(s.idle, 1);
});

test('threads are counted that have samples', () => {
  const rows = [[['main'], RUN, 10]], p = m.decode(encode([
    ['main', 0, true, rows], ['worker', 0, false, rows, true, [0, 0], [], 3], ['not chosen', 0, false, [], false, [0, 0], [], 0],
  ]));
  assert.deepEqual([m.select(p, all).threads, m.select(p, all).idle], [4, 3]);
});

test('of a range those threads are counted that were there', () => {
  const rows = [[['main'], RUN, 10]], p = m.decode(encode([
    ['early', 0, true, rows], ['late', 50, true, rows, true], ['without times', 0, false, rows],
  ]));
  const counts = (range) => { const s = m.select(p, { ...all, range }); return [s.threads, s.idle]; };
  assert.deepEqual(counts(null), [3, 1]);
  assert.deepEqual(counts([0, 5]), [1, 0]);
  assert.deepEqual(counts([20, 40]), [0, 0]);
  assert.deepEqual(counts([5, 60]), [2, 1]);
});

test('a tree adds up, its heaviest child first', () => {
  const p = server(), s = m.select(p, all), tree = m.callTree(p, s.weights), sum = m.weigh(p, tree, s.weights);
  const names = Array.from(tree.frame, (f) => (f < 0 ? 'all' : p.frames[f].name));
  assert.deepEqual(names, ['all', 'main', 'work', 'libwait', 'work', 'libpoll']);
  assert.deepEqual([...sum.total], [287, 287, 180, 90, 40, 100]);
  assert.deepEqual([...sum.self], [0, 7, 50, 90, 40, 100]);
  assert.deepEqual([...tree.end], [6, 6, 5, 4, 5, 6]);
  for (let i = 0; i < tree.n; i++)
    assert.equal(sum.mix.slice(i * 3, i * 3 + 3).reduce((a, b) => a + b), sum.total[i]);
});

test('callers of a function, and what it calls', () => {
  const p = server(), s = m.select(p, all), name = (tree) => Array.from(tree.frame, (f) => (f < 0 ? 'all' : p.frames[f].name));
  const callers = m.callersTree(p, s.weights), work = p.frames.findIndex((f) => f.name === 'work');
  assert.deepEqual([...m.weigh(p, callers, s.weights).total].slice(0, 1), [287]);
  assert.equal(name(callers)[1], 'libpoll');
  assert.deepEqual(name(m.focusTree(p, s.weights, work, false)).slice(0, 3), ['all', 'work', 'libwait']);
  assert.deepEqual(name(m.focusTree(p, s.weights, work, true)), ['all', 'work', 'main']);
});

test('recursion counts once in a function\'s total', () => {
  const p = server(), s = m.select(p, all), tree = m.callTree(p, s.weights), rows = m.functions(p, tree, m.weigh(p, tree, s.weights));
  const row = (name) => rows.find((r) => p.frames[r.frame].name === name);
  assert.deepEqual({ ...row('work'), frame: 0 }, { frame: 0, self: 90, total: 180, running: 90, waiting: 90 });
  assert.deepEqual({ ...row('main'), frame: 0 }, { frame: 0, self: 7, total: 287, running: 97, waiting: 190 });
});

test('a search counts nested matches once', () => {
  const p = server(), s = m.select(p, all), tree = m.callTree(p, s.weights), sum = m.weigh(p, tree, s.weights);
  assert.equal(m.matched(tree, sum.total, p.frames.map((f) => f.name === 'work')), 180 / 287);
  assert.equal(m.matched(tree, sum.total, p.frames.map(() => false)), 0);
});

test('boxes lie within those of their callers', () => {
  const p = server(), s = m.select(p, all), tree = m.callTree(p, s.weights), sum = m.weigh(p, tree, s.weights), at = new Map();
  m.layout(tree, sum.total, 0, 0, (node, x, w, d) => at.set(node, [x, w, d]));
  assert.equal(at.size, 6);
  for (let i = 1; i < 6; i++) {
    const [x, w, d] = at.get(i), [ux, uw, ud] = at.get(tree.parent[i]);
    assert.ok(x >= ux - 1e-12 && x + w <= ux + uw + 1e-12 && d === ud + 1);
  }
  const zoomed = [];
  m.layout(tree, sum.total, 2, 0.5, (node, x, w, d) => zoomed.push([node, x, w, d]));
  assert.deepEqual(zoomed, [[2, 0, 1, 0], [3, 0, 0.5, 1]]);
});

test('waits are told by the first frame that is no machinery', () => {
  const p = server(), rows = m.waits(p, m.select(p, all).weights).map((w) => [p.cats[w.cat], p.frames[w.frame].name, w.ns]);
  assert.deepEqual(rows, [['waiting: poll', 'main', 100], ['waiting: lock', 'work', 90]]);
});

test('density of a lane adds up to the thread\'s time', () => {
  const p = server(), t = p.threads[1];
  for (const width of [1, 3, 7, 100, 1000]) {
    const sum = m.density(p, t, 0, 100, width).reduce((a, b) => a + b, 0) * 100 / width;
    assert.ok(Math.abs(sum - 80) < 1e-3, `${width}: ${sum}`);
  }
  assert.equal(m.density(p, t, 50, 60, 4).reduce((a, b) => a + b, 0), 0);
});

test('a crowd is the number of threads at once', () => {
  const p = server(), x = m.crowd(p, [(c) => c === 'running', (c) => c === 'waiting: lock'], 0, 100, 10);
  const near = (a, b) => a.forEach((v, i) => assert.ok(Math.abs(v - b[i]) < 1e-9, `${i}: ${v} ${b[i]}`));
  near(x[0], [1, 2, 2, 1, 1, 0, 0, 0, 1, 1]);
  near(x[1], [0, 0, 0, 1, 1, 1, 2, 2, 1, 1]);
});

test('a cycle of waits is found, and a chain is none', () => {
  const edge = (from, to) => ({ from, to, object: '' });
  assert.equal(m.cycleOf([edge(1, 2), edge(2, 3)]), null);
  assert.deepEqual(m.cycleOf([edge(9, 1), edge(1, 2), edge(2, 1)]).map((e) => e.from), [1, 2]);
  assert.deepEqual(m.cycleOf([edge(4, 4)]).map((e) => e.from), [4]);
  /* Each of a long chain is met once. */
  const chain = Array.from({ length: 100000 }, (_, i) => edge(i, i + 1));
  assert.equal(m.cycleOf(chain), null);
  assert.equal(m.cycleOf(chain.toReversed()), null);
  assert.deepEqual(m.cycleOf([...chain, edge(100000, 99999)]).map((e) => e.from), [99999, 100000]);
  /* worker-2 waits for worker-2's lock at the end. */
  assert.deepEqual(m.waitEdges(server()).map((e) => [e.from, e.to]), [[1, 1]]);
});

test('two profiles are united by their functions\' names', () => {
  const before = m.decode(encode([['t', 0, true, [[['main', 'gone'], RUN, 60], [['main', 'work'], RUN, 40]]]]));
  const after = m.decode(encode([['t', 0, true, [[['main', 'work'], LOCK, 70], [['main', 'fresh'], RUN, 30]]]]));
  m.unite(after, before);
  const weights = m.select(after, all).weights, old = m.select(before, all).weights;
  assert.equal(weights.length, old.length);
  const tree = m.callTree(after, weights.map((w, i) => w + old[i]));
  const name = Array.from(tree.frame, (f) => (f < 0 ? 'all' : after.frames[f].name));
  const at = (sum, n) => sum.total[name.indexOf(n)];
  const [a, b] = [m.weigh(after, tree, weights), m.weigh(before, tree, old)];
  assert.deepEqual(['main', 'gone', 'work', 'fresh'].map((n) => [at(b, n), at(a, n)]), [[100, 100], [60, 0], [40, 70], [0, 30]]);
  assert.deepEqual(after.cats, ['running', 'waiting: lock']);
});

test('functions of one name and module are one, as in the text', () => {
  const rows = [[['main', 'run'], LOCK, 60], [['main', 'run2'], LOCK, 40]], exact = [[['main', 'run'], 50], [['main', 'run2'], 10]];
  const twice = { frames: [['main', '', 'exe', 0, 4], ['run', 'a.c', 'exe', 1, 4], ['run', 'b.c', 'exe', 2, 4]] };
  const read = () => m.decode(encode([['t', 0, true, rows, false, [0, 0], exact]], twice));
  const after = read(), before = read();
  m.unite(after, before);
  const [a, b] = [after, before].map((p) => Array.from(m.select(p, all).weights));
  assert.deepEqual(a, b);
  const tree = m.callTree(after, Float64Array.from(a)), sum = m.weigh(after, tree, a);
  assert.deepEqual(m.functions(after, tree, sum).map((f) => [after.frames[f.frame].name, f.self, f.total]), [['run', 100, 100], ['main', 0, 100]]);
  assert.deepEqual([...after.threads[0].exact.values()], [60]);
});

test('threads are those of the same names before', () => {
  const side = (list) => m.decode(encode(list.map(([name, count]) => [name, 0, true, [[['main'], RUN, 10]], false, [0, 0], [], count ?? 1])));
  const before = side([['pool'], ['main'], ['pool'], ['gone']]), after = side([['main'], ['new'], ['pool'], ['pool'], ['pool']]);
  const of = (p, base, ...chosen) => {
    const same = sameThreads(p, base, new Set(chosen));
    return same && [...same];
  };
  assert.equal(sameThreads(after, before, null), null);
  assert.deepEqual([of(after, before, 0), of(after, before, 1), of(after, before, 2, 3, 4, 0)], [[1], [], [0, 2, 1]]);
  /* Of a pool the third thread has the tid 3 in both, none of before has 4. */
  assert.deepEqual([of(after, before, 2), of(after, before, 3), of(after, before, 0, 2, 3)], [[2], undefined, undefined]);
  after.threads.forEach((t) => assert.deepEqual(of(after, after, t.index), [t.index]));
  /* Goroutines have no tid. */
  for (const t of [...before.threads, ...after.threads])
    t.tid = 0;
  assert.deepEqual([of(after, before, 0), of(after, before, 2), of(after, after, 2)], [[1], undefined, undefined]);
});

/* As tosses of a coin: LOOKS of POOL ns found NS of it. */
const coin = (looks, ns, pool) => {
  const q = (looks * ns / pool + 2) / (looks + 4);
  return pool * pool * q * (1 - q) / (looks + 4);
};
const divided = () => m.decode(encode([
  ['a', 0, true, [[['main', 'work'], RUN, 30], [['main', 'libwait'], LOCK, 40], [['main', 'libpoll'], POLL, 20], [['main', 'other'], RUN, 10]], false,
    [6, 4], [[['main', 'libpoll'], 15]]],
  ['b', 0, true, [[['main', 'work', 'work'], RUN, 100]], false, [0, 9]],
  ['old', 0, false, [[['main', 'work'], RUN, 7]]],
]));
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9 * Math.abs(b) + 1e-12, `${a} ${b}`);

test('errors are those of what samples divide', () => {
  const p = divided(), tree = m.callTree(p, m.select(p, all).weights);
  const of = (name, s = {}) => {
    const x = e.functionErrors(p, tree, { ...all, ...s }), f = p.frames.findIndex((frame) => frame.name === name);
    return [x.self[f], x.total[f]];
  };
  /* Of 60 ns of waits 15 are known: 45 are divided by 6 samples; 40 ns of running by 4. */
  near(of('libwait')[0], Math.sqrt(coin(6, 40, 45)));
  near(of('libpoll')[0], Math.sqrt(coin(6, 5, 45)));
  /* Threads' variances add up; recursion counts once; the thread without samples adds none. */
  near(of('work')[0], Math.sqrt(coin(4, 30, 40) + coin(9, 100, 100)));
  near(of('work')[1], of('work')[0]);
  near(of('main')[1], Math.sqrt(coin(6, 45, 45) + coin(4, 40, 40) + coin(9, 100, 100)));
  assert.equal(of('main')[0], 0);
  /* A range has its part of samples and of what is known; a state that is hidden was divided too. */
  near(of('libpoll', { range: [60, 100] })[0], Math.sqrt(coin(6 * 15 / 45, 5, 15)));
  near(of('work', { threads: new Set([0]), off: new Set([p.cats.indexOf('waiting: lock')]) })[0], Math.sqrt(coin(4, 30, 40)));
  assert.equal(of('libwait', { off: new Set([p.cats.indexOf('waiting: lock')]) })[0], 0);
  assert.deepEqual(of('work', { range: [500, 600] }), [0, 0]);
  assert.equal(e.functionErrors(server(), tree, { ...all }), null);
});

/* The numbers are those of test_errors.c. */
test('of bytes that were sampled the sum is sampled too', () => {
  const heap = (more) => m.decode(encode([
    ['a', 0, false, [[['main', 'known'], RUN, 1e6], [['main', 'sampled'], RUN, 2e6]], false, [0, 0], [[['main', 'sampled'], 2e6]]],
    ['b', 0, false, [[['main', 'sampled'], RUN, 1e6]], false, [0, 0], [[['main', 'sampled'], 1e6]]],
  ], { unit: 'bytes', bytes_per_sample: 65536, ...more }));
  const p = heap(), tree = m.callTree(p, m.select(p, all).weights), x = e.functionErrors(p, tree, { ...all });
  const [main, known, sampled] = ['main', 'known', 'sampled'].map((n) => p.frames.findIndex((f) => f.name === n));

  assert.ok([known, sampled].every((f) => Math.abs(x.share.self[f] - 113246.95) < 0.01), String(x.share.self));
  assert.deepEqual([x.self[known], x.share.self[main]], [0, 0]);
  near(x.self[sampled], Math.sqrt(3e6 * 65536 + 2 * 65536 ** 2));
  near(x.total[main], Math.sqrt(3e6 * 65536 + 2 * (3e6 * 65536 / 4e6) ** 2));
  /* Of one thread. */
  near(e.functionErrors(p, tree, { ...all, threads: new Set([1]) }).self[sampled], Math.sqrt(1e6 * 65536 + 2 * 65536 ** 2));
  assert.equal(e.functionErrors(heap({ bytes_per_sample: 0 }), tree, { ...all }), null);
});

test('errors follow their stacks when profiles are united', () => {
  const p = divided(), alone = m.callTree(p, m.select(p, all).weights), want = e.functionErrors(p, alone, { ...all });
  const names = p.frames.map((f) => f.name), base = m.decode(encode([['z', 0, true, [[['first', 'main', 'libpoll'], RUN, 60]]]]));
  m.unite(p, base);
  const tree = m.callTree(p, m.select(p, all).weights.map((w, i) => w + m.select(base, all).weights[i])), got = e.functionErrors(p, tree, { ...all });
  names.forEach((name, f) => near(got.self[f], want.self[f]));
});

test('errors are told where they say something', () => {
  assert.deepEqual([[0, 9], [4, 10000], [5, 10000], [194, 10000], [2.25, 100], [12, 100], [3, 0]].map(([a, b]) => e.points(a, b)),
    ['', '', '±0.1', '±1.9', '±2.3', '±12', '']);
  assert.deepEqual([[0, 5], [2e6, 5e6], [2e6, -7e6]].map(([a, b]) => e.beside({ unit: 'nanoseconds' }, a, b)), ['', ' ±2.00 ms', ' ±2.00 ms *']);
});

test('a stack of 3,000 frames is laid out', () => {
  const deep = Array.from({ length: 3000 }, (_, i) => 'f' + i);
  const p = m.decode(encode([['t', 0, true, [[deep, RUN, 5]]]])), s = m.select(p, all), tree = m.callTree(p, s.weights);
  let n = 0;
  m.layout(tree, m.weigh(p, tree, s.weights).total, 0, 0, () => n++);
  assert.equal(n, 3001);
});

test('an empty profile is a page too', () => {
  const p = m.decode(encode([])), s = m.select(p, all);
  assert.equal(s.total, 0);
  assert.equal(m.callTree(p, s.weights).n, 1);
  assert.equal(p.hasTime, false);
});

test('amounts have the digits that a person reads', () => {
  assert.deepEqual([0, 999, 1500, 99.96e6, 2.5e9, 1234e9].map(m.duration), ['0 ns', '999 ns', '1.50 us', '100 ms', '2.50 s', '1234 s']);
  assert.deepEqual([[0, 1], [1, 3], [1, 1], [1, 20], [1, 1000]].map(([a, b]) => m.percent(a, b)), ['0 %', '33.3 %', '100 %', '5.0 %', '0.10 %']);
  assert.deepEqual([3 << 20, -5 << 20, -(2 ** 31), -1536, -1000.0000001, 0.1 + 0.2].map((v) => m.amount({ unit: 'bytes' }, v)),
    ['3.0 MiB', '-5.0 MiB', '-2.00 GiB', '-1.5 KiB', '-1000 B', '0 B']);
  assert.equal(m.amount({ unit: 'count' }, 12345), '12,345');
});

test('an address keeps the threads that are selected', () => {
  const p = server();
  /* Goroutines have no tid, threads of two containers the same. */
  p.threads.forEach((t) => { t.tid = 0; });
  const state = { ...readHash(p, ''), threads: new Set([1, 3]) };
  assert.deepEqual([...readHash(p, writeHash(p, state)).threads], [1, 3]);
  assert.equal(readHash(p, '#th=-1,4,0.5').threads, null);
});

test('a page of more threads than a call has arguments', () => {
  const p = m.decode(encode([...Array(130000).keys()].map((i) => ['t' + i, 0, true, [[['main'], ['running'], 5]]])));
  assert.equal(p.end, 100);
  assert.equal(p.threads.length, 130000);
});
