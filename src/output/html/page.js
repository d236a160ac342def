/* SPDX-License-Identifier: Apache-2.0 */
/* page.js - one state, which the address keeps, and what is drawn of it. */
import { decode, select, unite } from './model.js';
import { byId } from './canvas.js';
import { beforeOf } from './compare.js';
import { startFlame } from './flame.js';
import { drawLegend, drawSummary, drawTable } from './tables.js';
import { startTimeline } from './timeline.js';

async function unpack(id) {
  const holder = byId(id), text = holder ? holder.textContent.trim() : '';

  if (!text)
    return null;
  holder.remove();
  const packed = atob(text), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++)
    bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return decode(new Uint8Array(await new Response(stream).arrayBuffer()));
}

const listOf = (text) => text.split(',').filter(Boolean).map(Number).filter(Number.isFinite);

/* The state that HASH tells, over that of a new page. */
export function readHash(p, hash) {
  const q = new URLSearchParams(hash.replace(/^#/, '')), flags = q.get('v') || '', range = listOf((q.get('t') || '').replace('-', ','));
  const before = listOf((q.get('b') || '').replace('-', ','));
  const view = listOf((q.get('z') || '').replace('-', ',')), pick = listOf(q.get('i') || '');
  const threads = q.has('th') ? listOf(q.get('th')).filter((i) => p.threads[i]) : [];
  const t = p.threads[pick[0]];

  return {
    range: range.length === 2 && range[0] < range[1] ? range : null,
    before: before.length === 2 && before[0] < before[1] ? before : null,
    view: view.length === 2 && view[0] < view[1] ? view : [p.begin, p.end],
    threads: threads.length ? new Set(threads) : null,
    off: new Set((q.get('off') || '').split('|').map((c) => p.cats.indexOf(c)).filter((c) => c >= 0)),
    pins: new Set(listOf(q.get('pin') || '')),
    pick: t && t.timed && pick[1] >= 0 && pick[1] < t.n ? { thread: pick[0], row: pick[1] } : null,
    query: q.get('q') || '', filter: q.get('f') || '', zoom: Math.max(0, Number(q.get('n')) || 0),
    focus: q.has('fn') && p.frames[q.get('fn')] ? Number(q.get('fn')) : -1,
    up: flags.includes('u'), callers: flags.includes('c'), byThread: flags.includes('t'), byModule: flags.includes('m'), hideIdle: flags.includes('i'),
    tab: ['functions', 'threads', 'recording'].includes(q.get('tab')) ? q.get('tab') : 'functions', sort: {},
  };
}

export function writeHash(p, s) {
  const q = new URLSearchParams(), put = (key, value) => value && q.set(key, value);

  put('t', s.range && s.range.map(Math.round).join('-'));
  put('b', s.before && s.before.map(Math.round).join('-'));
  put('z', (s.view[0] !== p.begin || s.view[1] !== p.end) && s.view.map(Math.round).join('-'));
  put('th', s.threads && [...s.threads].join(','));
  put('off', [...s.off].map((c) => p.cats[c]).join('|'));
  put('pin', [...s.pins].join(','));
  put('i', s.pick && s.pick.thread + ',' + s.pick.row);
  put('q', s.query);
  put('f', s.filter);
  put('n', s.zoom && String(s.zoom));
  put('fn', s.focus >= 0 && String(s.focus));
  put('v', (s.up ? 'u' : '') + (s.callers ? 'c' : '') + (s.byThread ? 't' : '') + (s.byModule ? 'm' : '') + (s.hideIdle ? 'i' : ''));
  put('tab', s.tab !== 'functions' && s.tab);
  return '#' + q;
}

/* The page is written for threads: of goroutines it says that. */
function nameWho(who) {
  const rename = (text) => text.replace(/thread/g, who).replace(/Thread/g, who[0].toUpperCase() + who.slice(1));
  /* NodeFilter.SHOW_TEXT */
  const texts = document.createTreeWalker(document.querySelector('main'), 4);

  while (texts.nextNode())
    texts.currentNode.data = rename(texts.currentNode.data);
  for (const name of ['placeholder', 'aria-label', 'title', 'data-title'])
    for (const e of document.querySelectorAll('main [' + name + ']'))
      e.setAttribute(name, rename(e.getAttribute(name)));
}

async function start() {
  const p = await unpack('data'), base = await unpack('base');
  const all = { range: null, threads: null, off: new Set(), hideIdle: false };

  if (base)
    unite(p, base);
  const app = { p, base, state: readHash(p, location.hash), drawn: 0 };
  app.whole = select(p, all);
  nameWho(p.who);
  /* What is shown, and what that is compared with (null: with nothing): another
	 * profile, or another range of this one. */
  const reselect = () => {
    const s = app.state, lengthOf = (range) => (range ? range[1] - range[0] : p.duration_ns) || 1;
    app.selection = select(p, s);
    /* Of what does not grow with time, or for a time that is not known, sums. */
    app.per = !base || ((p.unit === 'nanoseconds' || p.type.startsWith('alloc_')) && p.duration_ns > 0 && base.duration_ns > 0) ? 'per second' : 'sums';
    app.scale = app.per === 'sums' ? 1e9 : lengthOf(s.range);
    app.before = beforeOf(app, s.threads);
  };
  reselect();
  const flame = startFlame(app), timeline = startTimeline(app);
  let waiting = false, table = true;

  app.draw = () => {
    const from = performance.now();
    for (const [id, key] of Object.entries(flame.toggles))
      byId(id).setAttribute('aria-pressed', String(app.state[key]));
    drawLegend(app);
    timeline.draw();
    flame.draw();
    if (table)
      drawTable(app);
    table = waiting = false;
    app.drawn++;
    app.took = performance.now() - from;
  };
  app.redraw = () => {
    if (!waiting)
      requestAnimationFrame(app.draw);
    waiting = true;
  };
  app.update = (change) => {
    Object.assign(app.state, change);
    if (['range', 'before', 'threads', 'off', 'hideIdle'].some((key) => key in change))
      reselect();
    table ||= Object.keys(change).some((key) => !['view', 'pick', 'zoom', 'pins', 'filter'].includes(key));
    history.replaceState(null, '', writeHash(p, app.state));
    app.redraw();
  };
  const fillBoxes = () => {
    byId('search').value = app.state.query;
    byId('filter').value = app.state.filter;
  };
  fillBoxes();
  addEventListener('resize', () => app.redraw());
  /* On paper: light, all tables, as high as they are. */
  const print = (yes) => {
    document.documentElement.toggleAttribute('data-print', yes);
    table = true;
    drawSummary(app);
    app.draw();
  };
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
  addEventListener('hashchange', () => {
    app.update(readHash(p, location.hash));
    fillBoxes();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { drawSummary(app); app.redraw(); });
  addEventListener('keydown', (event) => {
    if (event.key === '/' && !(event.target instanceof HTMLInputElement)) {
      byId('search').focus();
      event.preventDefault();
    }
  });
  drawSummary(app);
  app.draw();
  document.documentElement.dataset.ready = 'yes';
  window.wallprof = app;
}

if (globalThis.document)
  start().catch((error) => {
    byId('summary').textContent = 'This page cannot be shown: ' + error.message;
    throw error;
  });
