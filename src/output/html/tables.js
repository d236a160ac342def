/* SPDX-License-Identifier: Apache-2.0 */
/* tables.js - the summary and the tables: what the canvases show, as text. */
import { OWN, amount, cycleOf, duration, isListed, percent, waitEdges, waits } from './model.js';
import { functions, weigh } from './trees.js';
import { beside, functionErrors, points } from './errors.js';
import { css, stateColour } from './colours.js';
import { byId, element, isDark, isPrinted } from './canvas.js';

/* Most rows that are made, on paper; a search finds the others. */
const ROWS = 300, PRINTED_ROWS = 40;

const chip = (cat) => element('i', { class: 'chip', style: 'background:' + css(stateColour(cat, isDark())) });

function lossesOf(p) {
  const lines = p.counters.filter((l) => /^lost: (?!nothing)|^ticks: .*(missed|left out)|^cpu: .* records lost|^timeline:/.test(l));

  return lines.length ? lines : [p.counters.includes('lost: nothing') ? 'nothing' : 'not told: not a profile of wallprof'];
}

/* What is known of who waits for whom, if somebody waits for ever. */
function waitGraph(p) {
  const edges = waitEdges(p), cycle = cycleOf(edges), name = (i) => p.threads[i].name + ' (' + p.threads[i].tid + ')';
  const counts = new Map();

  if (cycle)
    return ['deadlock: ' + cycle.length + ' threads wait for each other',
      ...cycle.map((e) => name(e.from) + ' waits for ' + (e.object || 'a lock') + ' held by ' + name(e.to))];
  edges.forEach((e) => counts.set(e.to, (counts.get(e.to) || 0) + 1));
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([to, n]) =>
    'at the end ' + n + (n === 1 ? ' thread waits' : ' threads wait') + ' for a lock held by ' + name(to));
}

export function drawSummary(app) {
  const { p } = app, all = app.whole, graph = waitGraph(p), dark = isDark();
  const count = all.threads, idle = all.idle, shown = p.cats.map((c, i) => i).filter((i) => all.cats[i]);
  const line = (name, ...what) => [element('dt', {}, name), element('dd', {}, ...what)];

  byId('title').textContent = p.command || p.exe || 'profile';
  document.title = 'wallprof: ' + (p.command || p.exe || 'profile');
  byId('when').textContent = [p.pid ? 'process ' + p.pid : '', p.time_ms ? new Date(p.time_ms).toLocaleString() : '',
    p.duration_ns ? 'recorded for ' + duration(p.duration_ns) + (p.hz ? ' at ' + p.hz.toFixed(0) + ' Hz' : '') : '',
    count ? count + ' ' + p.who + (count === 1 ? '' : 's') + (idle ? ', ' + idle + ' of them idle' : '') : '',
    app.base ? 'compared with ' + [app.base.pid ? 'process ' + app.base.pid : '', app.base.time_ms ? new Date(app.base.time_ms).toLocaleString() : '',
      'for ' + duration(app.base.duration_ns)].filter(Boolean).join(', ') : '', p.target_end, p.kind === 'wall' ? '' : p.kind].filter(Boolean).join(' · ');
  byId('summary').replaceChildren(
    ...(graph.length ? [element('div', { class: 'alarm' }, ...graph.map((l) => element('div', {}, l)))] : []),
    element('div', { class: 'mix', 'aria-hidden': 'true' }, ...shown.map((i) =>
      element('span', { style: 'flex:' + all.cats[i] + ';background:' + css(stateColour(p.cats[i], dark)) }))),
    element('dl', {},
      ...line('Where time goes', shown.sort((a, b) => all.cats[b] - all.cats[a]).map((i) => percent(all.cats[i], all.total) + ' ' + p.cats[i]).join(', ') || 'nowhere'),
      ...line('Longest waits', ...(waits(p, all.weights).slice(0, 3).map((w) => element('div', {}, chip(p.cats[w.cat]),
        percent(w.ns, all.total) + ' ' + p.cats[w.cat].replace('waiting: ', '') + ' at ' + (w.frame < 0 ? 'an unknown place' : p.frames[w.frame].name)))), ),
      ...line('Lost', ...lossesOf(p).map((l) => element('div', {}, l)))));
}

export function drawLegend(app) {
  const { p, state } = app, s = app.selection;

  byId('legend').replaceChildren(...p.cats.map((cat, i) => element('button', {
    'aria-pressed': String(!state.off.has(i)),
    onclick: () => {
      const off = new Set(state.off);
      if (!off.delete(i))
        off.add(i);
      app.update({ off });
    },
    ondblclick: () => app.update({ off: new Set(p.cats.map((c, other) => other).filter((other) => other !== i)) }),
    title: amount(p, s.cats[i]) + '; double click: only this',
  }, chip(cat), cat + ' ', element('span', { class: 'dim' }, percent(s.cats[i], s.cats.reduce((a, b) => a + b, 0))))));
}

/* A table of ROWS: COLUMNS are [title, key, text, hint]; the last column is CELL(row). */
function table(app, name, columns, rows, cell, rowClass) {
  const key = app.state.sort[name] || columns[0][1];
  const head = columns.map(([title, k, , hint]) => element('th', { scope: 'col', 'aria-sort': k === key ? 'descending' : false },
    element('button', { title: hint || false, 'aria-label': hint || false, onclick: () => app.update({ sort: { ...app.state.sort, [name]: k } }) }, title)));

  rows.sort((a, b) => b[key] - a[key]);
  return element('table', {}, element('thead', {}, element('tr', {}, ...head, element('th', { scope: 'col' }, name))),
    element('tbody', {}, ...rows.slice(0, isPrinted() ? PRINTED_ROWS : ROWS).map((r) => element('tr', { class: rowClass ? rowClass(r) : null },
      ...columns.map(([, , show]) => element('td', {}, show(r))), cell(r)))));
}

/* Set the standard errors of ROWS, and of their change if something is compared;
 * returns whether they are known. */
function addErrors(app, tree, rows) {
  const { p, before } = app, now = functionErrors(p, tree, app.selection.of);
  const old = before && functionErrors(before.profile, tree, before.selection.of);

  for (const r of rows)
    for (const key of ['self', 'total']) {
      r[key + 'Error'] = now ? (now.share || now)[key][r.frame] : 0;
      r[key + 'ChangeError'] = now && old ? Math.hypot(now[key][r.frame] / app.scale, old[key][r.frame] / before.scale) : 0;
    }
  return !!now;
}

function drawFunctions(app) {
  const { p, before, state } = app, tree = app.calls(), all = app.selection.total;
  const share = (key) => (r) => percent(r[key], all), lengthOf = (r) => amount(p, r.total);
  const error = (key) => ['±', key, (r) => points(r[key], all), 'standard error of ' + key.replace('Error', '') + ', in points'];
  let pattern = null, rows = functions(p, tree, weigh(p, tree, app.selection.weights));
  let columns = [['self', 'self', share('self')], ['total', 'total', share('total')], ['on CPU', 'running', share('running')], ['waiting', 'waiting', share('waiting')],
    ['total', 'total', lengthOf]];

  if (before) {
    const per = app.per === 'sums' ? '' : ' /s';
    const olds = new Map(functions(before.profile, tree, weigh(before.profile, tree, before.selection.weights)).map((r) => [r.frame, r]));
    const here = new Set(rows.map((r) => r.frame));
    for (const frame of olds.keys())
      if (!here.has(frame))
        rows.push({ frame, self: 0, total: 0, running: 0, waiting: 0 });
    for (const r of rows) {
      const old = olds.get(r.frame) || { self: 0, total: 0 };
      r.selfChange = r.self / app.scale - old.self / before.scale;
      r.totalChange = r.total / app.scale - old.total / before.scale;
      r.most = Math.abs(r.selfChange) || Math.abs(r.totalChange) * 1e-6;
    }
    const signed = (key) => (r) => element('span', { class: r[key] > 0 ? 'grew' : r[key] < 0 ? 'shrank' : null }, (r[key] > 0 ? '+' : '') +
      amount(p, r[key] * 1e9) + beside(p, r[key + 'Error'] * 1e9, r[key] * 1e9));
    columns = [['change of self' + per, 'most', signed('selfChange')], ['of total' + per, 'totalChange', signed('totalChange')], ...columns];
  }
  if (addErrors(app, tree, rows))
    columns = columns.flatMap((c) => (c[1] === 'self' || (c[1] === 'total' && c[2] !== lengthOf) ? [c, error(c[1] + 'Error')] : [c]));
  try {
    pattern = state.query ? new RegExp(state.query, 'i') : null;
  } catch {
    /* The search box says so. */
  }
  if (pattern)
    rows = rows.filter((r) => pattern.test(p.frames[r.frame].name) || pattern.test(p.frames[r.frame].module));
  byId('functions').replaceChildren(table(app, 'function', columns, rows, (r) => {
    const f = p.frames[r.frame];
    return element('td', {}, element('button', {
      class: f.flags & OWN ? null : 'lib', title: 'show its callers and callees',
      onclick: () => app.update({ focus: r.frame, zoom: 0 }),
    }, f.name), element('span', { class: 'dim' }, '  ' + [f.file + (f.line ? ':' + f.line : ''), f.module].filter(Boolean).join('  ')));
  }));
}

function drawThreads(app) {
  const { p, state } = app, of = (name) => (r) => percent(p.cats.reduce((sum, c, i) => (c.startsWith(name) ? sum + r.t.sums[i] : sum), 0), r.t.total);
  const sum = (t, name) => p.cats.reduce((all, c, i) => (c.startsWith(name) ? all + t.sums[i] : all), 0);
  const id = p.who === 'thread' ? 'tid' : 'id';
  const rows = p.threads.filter(isListed).map((t) => ({
    t, running: sum(t, 'running'), runnable: sum(t, 'runnable'), waiting: sum(t, 'waiting'), total: t.total, tid: -t.tid,
  }));

  byId('threads').replaceChildren(table(app, p.who, [['running', 'running', of('running')], ['runnable', 'runnable', of('runnable')],
    ['waiting', 'waiting', of('waiting')], ['watched for', 'total', (r) => amount(p, r.total)], [id, 'tid', (r) => String(r.t.tid)]], rows, (r) => {
    const on = !!state.threads && state.threads.has(r.t.index);
    return element('td', {}, element('button', {
      'aria-pressed': String(on), title: (on ? 'leave out this ' : 'select this ') + p.who,
      onclick: () => {
        const threads = new Set(state.threads || []);
        if (!threads.delete(r.t.index))
          threads.add(r.t.index);
        app.update({ threads: threads.size ? threads : null });
      },
    }, (on ? '✓ ' : '') + r.t.name + (r.t.count > 1 ? ' and ' + (r.t.count - 1) + ' more' : '')), element('span', { class: 'dim' }, r.t.idle ? '  idle' : ''));
  }, (r) => (state.threads && !state.threads.has(r.t.index) ? 'off' : null)));
}

function drawRecording(app) {
  const { p } = app;

  byId('recording').replaceChildren(element('pre', {}, [p.command ? 'command: ' + p.command : '', p.exe ? 'program: ' + p.exe : '',
    'wallprof ' + p.wallprof, ...p.counters].filter(Boolean).join('\n')));
}

const TABS = { functions: drawFunctions, threads: drawThreads, recording: drawRecording };

/* Draw the table that is shown; on paper all of them. */
export function drawTable(app) {
  for (const name of Object.keys(TABS)) {
    byId('tab-' + name).setAttribute('aria-selected', String(app.state.tab === name));
    byId('tab-' + name).onclick = () => app.update({ tab: name });
    byId(name).hidden = app.state.tab !== name && !isPrinted();
    if (!byId(name).hidden)
      TABS[name](app);
  }
}
