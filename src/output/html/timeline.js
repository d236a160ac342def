/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.js - a lane per thread, coloured by what it did when. */
import { crowd, density, duration, isListed, rowAt } from './model.js';
import { framesOf } from './trees.js';
import { css, stateColour } from './colours.js';
import { byId, drawText, element, isDark, prepare, themeColour, tip } from './canvas.js';

const LABEL = 180, RULER = 18, CROWD = 38, HEAD = RULER + CROWD + 4, LANE = 18;

/* Threads whose name has the filter's text: pinned ones, then by program, process and groups
 * of one name, the most active first. */
export function lanesOf(p, state) {
  const text = state.filter.toLowerCase();
  const orders = ['program', 'process', 'group'].map((key) => {
    const sums = new Map();

    for (const t of p.threads)
      sums.set(t[key], (sums.get(t[key]) || 0) + t.active);
    return (a, b) => sums.get(b[key]) - sums.get(a[key]) || (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0);
  });

  return p.threads.filter((t) => t.timed && (t.name + ' ' + t.tid + ' ' + t.process).toLowerCase().includes(text)).sort((a, b) =>
    state.pins.has(b.index) - state.pins.has(a.index) || orders[0](a, b) || orders[1](a, b) || orders[2](a, b) ||
    b.active - a.active || a.index - b.index);
}

/* What the interval ROW of thread T was, in words. */
export function intervalText(p, t, row) {
  const kind = p.kinds[t.kind[row] - 1], held = kind && kind.holder >= 0 ? p.threads[kind.holder] : null;

  return [
    t.name + ' (' + t.tid + ')',
    kind ? kind.name + (kind.object ? ': ' + kind.object : '') : 'not watched',
    held ? 'held by ' + held.name + ' (' + held.tid + ')' : '',
    'since ' + duration(t.time[row] - p.begin) + ', for ' + duration(t.time[row + 1] - t.time[row]) +
      (row === t.n - 1 ? ' (to the end)' : ''),
  ].filter(Boolean).join('\n');
}

/* A step of the ruler, so that there are at most MOST of them in NS, or one. */
function step(ns, most) {
  let s = 1;

  while (ns / s > Math.max(1, most))
    s *= String(s)[0] === '2' ? 2.5 : 2;
  return s;
}

export function startTimeline(app) {
  const { p, state } = app, box = byId('lanes');
  let lanes = [], frame = null, hover = null, drag = null;

  const toX = (ns) => LABEL + (ns - state.view[0]) / (state.view[1] - state.view[0]) * (frame.width - LABEL);
  const toTime = (x) => state.view[0] + (x - LABEL) / (frame.width - LABEL) * (state.view[1] - state.view[0]);
  const toLane = (y) => Math.floor((y - HEAD + box.scrollTop) / LANE);
  const laneY = (i) => HEAD + i * LANE - box.scrollTop;

  function zoom(factor, at) {
    const [v0, v1] = state.view, span = Math.min(p.end - p.begin, Math.max(1000, (v1 - v0) * factor));
    let from = at - (at - v0) / (v1 - v0) * span;
    from = Math.max(p.begin, Math.min(from, p.end - span));
    app.update({ view: [from, from + span] });
  }

  function pan(ns) {
    const span = state.view[1] - state.view[0];
    const from = Math.max(p.begin, Math.min(state.view[0] + ns, p.end - span));
    app.update({ view: [from, from + span] });
  }

  function drawRuler() {
    const c = frame.context, [v0, v1] = state.view, s = step(v1 - v0, (frame.width - LABEL) / 90);
    c.fillStyle = themeColour('dim');
    c.font = '11px system-ui, sans-serif';
    for (let at = Math.ceil(v0 / s) * s; at <= v1; at += s) {
      const x = toX(at);
      c.fillRect(x, RULER - 4, 1, 4);
      if (x + 50 < frame.width)
        c.fillText(duration(at), x + 3, RULER / 2);
    }
    c.font = '12px system-ui, sans-serif';
  }

  /* Threads at once that ran, waited for a CPU, waited for locks. */
  function drawCrowd(dark) {
    const c = frame.context, width = Math.max(1, Math.floor(frame.width - LABEL));
    const names = ['running', 'runnable', 'waiting: lock'];
    const x = crowd(p, [(n) => n === names[0], (n) => n === names[1], (n) => n === names[2] || n === 'waiting: futex'],
      ...state.view, width);
    let most = 1;
    for (let i = 0; i < width; i++)
      most = Math.max(most, x[0][i] + x[1][i] + x[2][i]);
    for (let i = 0; i < width; i++) {
      let y = RULER + CROWD;
      names.forEach((name, s) => {
        const h = x[s][i] / most * CROWD;
        c.fillStyle = css(stateColour(name, dark));
        c.fillRect(LABEL + i, y - h, 1, h);
        y -= h;
      });
    }
    c.fillStyle = themeColour('dim');
    drawText(c, (p.who === 'thread' ? 'threads at once, most ' : 'at once, most ') + most.toFixed(most < 10 ? 1 : 0), 4, RULER + 10, LABEL - 8);
    drawText(c, 'run, want CPU, want lock', 4, RULER + 26, LABEL - 8);
  }

  function drawLanes(dark) {
    const { context, ratio } = frame, n = p.cats.length;
    const width = Math.floor((frame.width - LABEL) * ratio), height = Math.round((LANE - 3) * ratio);
    const colours = p.cats.map((cat) => stateColour(cat, dark)).map(([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0);
    const first = Math.max(0, toLane(HEAD)), last = Math.min(lanes.length - 1, toLane(frame.height));

    if (width < 1)
      return;
    for (let i = first; i <= last; i++) {
      const t = lanes[i], x = density(p, t, ...state.view, width), y = laneY(i);
      const image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
      for (let col = 0; col < width; col++) {
        let sum = 0, from = height;
        for (let cat = 0; cat < n; cat++) {
          const part = x[col * n + cat];
          if (!part || state.off.has(cat))
            continue;
          sum += part;
          const to = Math.max(0, Math.round(height * (1 - sum)));
          for (let row = to; row < from; row++)
            pixels[row * width + col] = colours[cat];
          from = Math.min(from, to);
        }
      }
      context.putImageData(image, Math.round(LABEL * ratio), Math.round((y + 1) * ratio));
      if (state.threads && state.threads.has(t.index)) {
        context.fillStyle = themeColour('mark');
        context.fillRect(0, y + 1, 3, LANE - 3);
      }
      context.fillStyle = themeColour(state.threads && !state.threads.has(t.index) ? 'dim' : 'fore');
      drawText(context, (state.pins.has(t.index) ? '• ' : '') + t.name + '  ' + t.tid, 7, y + LANE / 2, LABEL - 14);
    }
  }

  /* From the waiter's lane to the holder's, at the wait's begin. */
  function drawArrow(i, t, row) {
    const c = frame.context, holder = p.kinds[t.kind[row] - 1].holder;
    const to = lanes.findIndex((lane) => lane.index === holder);
    const x = Math.max(LABEL + 2, toX(Math.max(t.time[row], state.view[0])) + 3);
    const y0 = laneY(i) + LANE / 2, y1 = laneY(to) + LANE / 2, tipY = y1 + (y1 > y0 ? -4 : 4);
    if (to < 0)
      return;
    c.beginPath();
    c.arc(x, y0, 2, 0, 7);
    c.moveTo(x, y0);
    c.lineTo(x, tipY);
    c.moveTo(x - 3, tipY + (y1 > y0 ? -4 : 4));
    c.lineTo(x, tipY);
    c.lineTo(x + 3, tipY + (y1 > y0 ? -4 : 4));
    c.stroke();
  }

  function drawArrows() {
    const scale = (frame.width - LABEL) / (state.view[1] - state.view[0]);
    let room = 80;

    frame.context.strokeStyle = themeColour('fore');
    lanes.forEach((t, i) => {
      if (laneY(i) < HEAD - LANE || laneY(i) > frame.height)
        return;
      for (let row = Math.max(0, rowAt(t, state.view[0])); row < t.n && t.time[row] < state.view[1] && room > 0; row++) {
        const kind = p.kinds[t.kind[row] - 1];
        const seen = Math.min(t.time[row + 1], state.view[1]) - Math.max(t.time[row], state.view[0]);
        if (kind && kind.holder >= 0 && seen * scale >= 14) {
          drawArrow(i, t, row);
          room--;
        }
      }
    });
  }

  function drawMarks() {
    const c = frame.context, pick = state.pick;
    const range = drag && drag.range ? drag.range : state.range;
    if (range) {
      const a = Math.max(LABEL, toX(range[0])), b = Math.max(LABEL, toX(range[1]));
      c.fillStyle = isDark() ? 'rgb(0 0 0 / .5)' : 'rgb(255 255 255 / .6)';
      c.fillRect(LABEL, RULER, a - LABEL, frame.height);
      c.fillRect(b, RULER, frame.width - b, frame.height);
      c.strokeStyle = themeColour('mark');
      c.strokeRect(a, RULER + .5, Math.max(1, b - a), frame.height - RULER - 1);
    }
    if (state.before) {
      const a = Math.max(LABEL, toX(state.before[0])), b = Math.max(LABEL, toX(state.before[1]));
      c.strokeStyle = themeColour('shrank');
      c.setLineDash([5, 4]);
      c.strokeRect(a, RULER + .5, Math.max(1, b - a), frame.height - RULER - 1);
      c.setLineDash([]);
    }
    const at = pick ? lanes.findIndex((t) => t.index === pick.thread) : -1;
    if (at >= 0 && laneY(at) >= HEAD - LANE / 2) {
      const t = lanes[at], a = Math.max(LABEL, toX(t.time[pick.row])), b = Math.min(frame.width, toX(t.time[pick.row + 1]));
      c.strokeStyle = themeColour('mark');
      c.lineWidth = 2;
      if (b >= a)
        c.strokeRect(a, laneY(at) + 1, Math.max(2, b - a), LANE - 3);
      c.lineWidth = 1;
    }
  }

  function draw() {
    const dark = isDark();

    byId('timeline').hidden = !p.hasTime;
    if (!p.hasTime)
      return;
    lanes = lanesOf(p, state);
    frame = prepare(box, HEAD + lanes.length * LANE + 2);
    drawLanes(dark);
    drawArrows();
    frame.context.clearRect(0, 0, frame.width, HEAD);
    drawCrowd(dark);
    drawRuler();
    drawMarks();
    byId('all-threads').hidden = !state.threads;
    const { range, before } = state, between = (r) => duration(r[0]) + ' to ' + duration(r[1]) + ' (' + duration(r[1] - r[0]) + ')';
    byId('compare').hidden = !!app.base || !(range || before);
    byId('compare').textContent = before ? 'end comparison' : 'compare with this';
    byId('range').textContent = (range ? 'selected: ' + between(range) : '') + (before ? (range ? ', ' : 'whole time ') + 'compared with ' + between(before) : '') +
      (state.threads ? ' ' + state.threads.size + ' of ' + p.threads.filter(isListed).length + ' ' + p.who + 's' : '') ||
      'drag selects a time, a click an interval or a ' + p.who + '; ctrl+wheel zooms';
    drawPick();
  }

  function drawPick() {
    const panel = byId('pick'), pick = state.pick, t = pick && p.threads[pick.thread];

    panel.hidden = !pick;
    if (!pick)
      return;
    const frames = framesOf(p, p.stackNode[t.stack[pick.row]]).map((f) => p.frames[f]);
    panel.replaceChildren(
      element('div', { style: 'white-space:pre-line' }, intervalText(p, t, pick.row)),
      element('ol', { start: '0' }, ...frames.map((f) => element('li', {}, f.name,
        element('span', { class: 'dim' }, f.file ? '  ' + f.file + (f.line ? ':' + f.line : '') : f.module ? '  (' + f.module + ')' : '')))),
      element('button', { onclick: () => app.update({ range: [t.time[pick.row], t.time[pick.row + 1]] }) }, 'select this time'), ' ',
      element('button', { onclick: () => app.update({ threads: new Set([t.index]) }) }, 'only this ' + p.who), ' ',
      element('button', { onclick: () => app.update({ pick: null }) }, 'close'));
  }

  function place(event) {
    const r = box.getBoundingClientRect(), x = event.clientX - r.left, y = event.clientY - r.top;
    const i = y >= HEAD ? toLane(y) : -1, t = lanes[i];

    return { x, y, t, time: toTime(x), row: t && x >= LABEL ? rowAt(t, toTime(x)) : -1 };
  }

  function onWheel(event) {
    const at = place(event), span = state.view[1] - state.view[0];
    if (event.ctrlKey || event.metaKey || (at.y < HEAD && !event.shiftKey)) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY / 300), Math.max(state.view[0], at.time));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan((event.deltaX || event.deltaY) / frame.width * span);
    }
  }

  /* The selected range becomes what is compared with, and another can be selected. */
  function toggleCompare() {
    if (state.before)
      app.update({ before: null });
    else if (state.range && !app.base)
      app.update({ before: state.range, range: null });
  }

  function toggleThread(index) {
    const threads = new Set(state.threads || []);

    if (!threads.delete(index))
      threads.add(index);
    app.update({ threads: threads.size ? threads : null });
  }

  box.addEventListener('wheel', onWheel, { passive: false });
  box.addEventListener('scroll', () => app.redraw());
  box.addEventListener('pointerdown', (event) => {
    if (event.button || event.offsetX >= box.clientWidth)
      return;
    drag = { from: place(event), view: state.view };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener('pointermove', (event) => {
    const at = place(event);
    hover = at;
    if (drag && Math.abs(at.x - drag.from.x) > 4 && drag.from.x >= LABEL) {
      if (drag.from.y < RULER)
        pan((drag.from.x - at.x) / (frame.width - LABEL) * (drag.view[1] - drag.view[0]) - (state.view[0] - drag.view[0]));
      else
        drag.range = [Math.min(drag.from.time, at.time), Math.max(drag.from.time, at.time)].map((ns) => Math.max(p.begin, Math.min(p.end, ns)));
      app.redraw();
    }
    tip(event, drag ? '' : at.row >= 0 ? intervalText(p, at.t, at.row) : at.t ? at.t.name + ' (' + at.t.tid + ')\n' +
      p.cats.filter((c, i) => at.t.sums[i]).map((c) => c + ' ' + duration(at.t.sums[p.cats.indexOf(c)])).join('\n') : '');
  });
  box.addEventListener('pointerleave', (event) => tip(event, ''));
  box.addEventListener('pointerup', () => {
    const d = drag;
    drag = null;
    if (d && d.range)
      app.update({ range: d.range });
    else if (d && hover && d.from.t && d.from.x < LABEL)
      toggleThread(d.from.t.index);
    else if (d && d.from.row >= 0)
      app.update({ pick: { thread: d.from.t.index, row: d.from.row } });
  });

  /* Move the picked interval by ROWS in its lane or by LANES. */
  function movePick(rows, steps) {
    const pick = state.pick || { thread: lanes[0] ? lanes[0].index : 0, row: 0 };
    const at = Math.max(0, lanes.findIndex((t) => t.index === pick.thread));
    const to = Math.max(0, Math.min(lanes.length - 1, at + steps)), t = lanes[to], old = p.threads[pick.thread];
    if (!t)
      return;
    const row = steps ? Math.max(0, rowAt(t, Math.max(old.time[pick.row], state.view[0]))) : Math.max(0, Math.min(t.n - 1, pick.row + rows));
    if (laneY(to) < HEAD || laneY(to) + LANE > box.clientHeight)
      box.scrollTop = Math.max(0, to * LANE - 60);
    const view = t.time[row] > state.view[1] || t.time[row + 1] < state.view[0] ? { view: [p.begin, p.end] } : {};
    app.update({ pick: { thread: t.index, row }, ...view });
  }

  function onKey(event) {
    const span = state.view[1] - state.view[0], middle = (state.view[0] + state.view[1]) / 2, pick = state.pick;
    const t = pick && p.threads[pick.thread];
    const keys = {
      ArrowLeft: () => pan(-span / 8), ArrowRight: () => pan(span / 8), a: () => pan(-span / 8), d: () => pan(span / 8),
      '+': () => zoom(0.6, middle), '=': () => zoom(0.6, middle), w: () => zoom(0.6, middle),
      '-': () => zoom(1 / 0.6, middle), s: () => zoom(1 / 0.6, middle),
      ArrowDown: () => movePick(0, pick ? 1 : 0), ArrowUp: () => movePick(0, pick ? -1 : 0),
      '[': () => movePick(-1, 0), ']': () => movePick(1, 0), Enter: () => movePick(0, 0),
      r: () => pick && app.update({ range: [t.time[pick.row], t.time[pick.row + 1]] }),
      t: () => pick && toggleThread(pick.thread),
      b: toggleCompare,
      p: () => {
        const pins = new Set(state.pins);
        if (pick && !pins.delete(pick.thread))
          pins.add(pick.thread);
        app.update({ pins });
      },
      Escape: () => app.update({ range: null, before: null, threads: null, pick: null, view: [p.begin, p.end] }),
    };

    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key])
      return;
    event.preventDefault();
    keys[event.key]();
  }

  box.addEventListener('keydown', onKey);
  byId('whole').onclick = () => app.update({ view: [p.begin, p.end], range: null });
  byId('compare').onclick = toggleCompare;
  byId('all-threads').onclick = () => app.update({ threads: null });
  byId('filter').oninput = (event) => app.update({ filter: event.target.value });
  return { draw };
}
