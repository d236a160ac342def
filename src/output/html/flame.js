/* SPDX-License-Identifier: Apache-2.0 */
/* flame.js - boxes of calls: by all threads or one root each, from callers to callees
 * or the other way. */
import { OWN, addThread, amount, percent, select } from './model.js';
import { callTree, callersTree, focusTree, functions, layout, matched, weigh } from './trees.js';
import { beside, functionErrors } from './errors.js';
import { beforeOf } from './compare.js';
import { changeColour, css, moduleColour, stateColour } from './colours.js';
import { byId, drawText, isDark, prepare, themeColour, tip } from './canvas.js';

const BOX = 19, LEAST = 0.5;

export function startFlame(app) {
  const { p, base, state } = app, box = byId('boxes');
  /* Trees by what they show; those of all calls do not depend on the selection. */
  const trees = new Map();
  let boxes = [], frame = null, depth = 0, sums = [], match = null, at = null;

  function treeOf(name, make) {
    if (!trees.has(name))
      trees.set(name, make());
    return trees.get(name);
  }

  const everything = () => {
    const all = { range: null, threads: null, off: new Set(), hideIdle: false }, weights = select(p, all).weights;
    if (base)
      select(base, all).weights.forEach((w, i) => { weights[i] += w; });
    return weights;
  };

  /* The parts to draw, one above the other: [{tree, up}]. */
  function parts() {
    const f = state.focus;

    if (f >= 0)
      return [
        { tree: treeOf('up ' + f, () => focusTree(p, everything(), f, true)), up: true },
        { tree: treeOf('down ' + f, () => focusTree(p, everything(), f, false)), up: false },
      ];
    return [{
      tree: state.callers ? treeOf('callers', () => callersTree(p, everything())) : app.calls(),
      up: state.up,
    }];
  }

  app.calls = () => treeOf('calls', () => callTree(p, everything()));

  /* Boxes of TREE with the sums SUM, from X on, WIDTH wide of 1; TOP rows above. */
  function place(part, sum, x0, width, top, group, pixels) {
    const { tree } = part, zoom = group || part.up !== parts()[0].up ? 0 : Math.min(state.zoom, tree.n - 1);

    for (let i = tree.parent[zoom], up = zoom; up > 0; up = i, i = tree.parent[i])
      boxes.push({ part, sum, node: i, x: x0, w: width, depth: top + tree.depth[i], group, above: true });
    layout(tree, sum.total, zoom, LEAST / pixels / width, (node, x, w, d) => {
      boxes.push({ part, sum, node, x: x0 + x * width, w: w * width, depth: top + tree.depth[zoom] + d, group });
    });
  }

  function placeThreads(part, pixels) {
    const all = app.selection, off = state.off, n = p.cats.length;
    const groups = p.threads.filter((t) => (!state.threads || state.threads.has(t.index)) && !(state.hideIdle && t.idle)).map((t) => {
      const weights = new Float64Array(all.weights.length);
      addThread(p, t, state.range, weights);
      let total = 0;
      for (let i = 0; i < weights.length; i++) {
        if (off.has(i % n))
          weights[i] = 0;
        total += weights[i];
      }
      return { t, total, weights: total * pixels >= all.total * LEAST * 4 ? weights : null };
    }).filter((g) => g.weights).sort((a, b) => b.total - a.total);
    let x = 0;

    for (const g of groups) {
      place(part, weigh(p, part.tree, g.weights), x, g.total / all.total, 0, g.t, pixels);
      x += g.total / all.total;
    }
  }

  function arrange(pixels) {
    boxes = [];
    sums = parts().map((part) => weigh(p, part.tree, app.selection.weights));
    parts().forEach((part, i) => {
      if (state.byThread && state.focus < 0)
        placeThreads(part, pixels);
      else if (sums[i].total[0])
        place(part, sums[i], 0, 1, 0, null, pixels);
    });
    const deepest = parts().map((part) => boxes.reduce((d, b) => (b.part.tree === part.tree ? Math.max(d, b.depth + 1) : d), 0));
    for (const b of boxes) {
      const i = parts().findIndex((part) => part.tree === b.part.tree);
      b.y = b.part.up ? deepest[0] - 1 - b.depth : (i ? deepest[0] - 1 : 0) + b.depth;
    }
    depth = Math.max(1, deepest.reduce((a, b) => a + b, 0) - (deepest.length - 1));
  }

  function label(b) {
    const f = b.part.tree.frame[b.node];

    return f >= 0 ? p.frames[f].name : b.group ? b.group.name + ' ' + b.group.tid : state.focus >= 0 ? p.frames[state.focus].name : 'all';
  }

  const compares = () => base || state.before;
  const unknown = () => 'not compared: others have the same name, and which ' + p.who + ' it was before is not known';

  /* How a node's share has changed, from -1 to 1; null: that is not known. */
  function change(b) {
    const old = sumBefore(b.part.tree, b.group);

    if (!old)
      return null;
    const after = b.sum.total[b.node] / app.scale, before = old.total[b.node] / old.scale;
    return { before, after, part: (after - before) / Math.max(after, before, 1e-12) };
  }

  /* What TREE's nodes had before, of the thread GROUP or (null) of all that are selected. */
  const sumsBefore = new WeakMap();
  function sumBefore(tree, group) {
    let known = sumsBefore.get(tree);

    if (!known || known.of !== app.selection)
      sumsBefore.set(tree, known = { of: app.selection, sums: new Map() });
    if (!known.sums.has(group)) {
      const before = group ? beforeOf(app, new Set([group.index])) : app.before;
      known.sums.set(group, before && { scale: before.scale, total: weigh(before.profile, tree, before.selection.weights).total });
    }
    return known.sums.get(group);
  }

  function paint(c, b, x, y, w, dark) {
    const f = p.frames[b.part.tree.frame[b.node]], n = p.cats.length, h = BOX - 1;

    if (compares() && f) {
      c.fillStyle = css(changeColour(change(b)?.part || 0, dark));
      c.fillRect(x, y, w, h);
    } else if (state.byModule && f) {
      c.fillStyle = css(moduleColour(f.module, f.flags & OWN, dark));
      c.fillRect(x, y, w, h);
    } else {
      const all = b.sum.total[b.node];
      let from = x;
      for (let cat = 0; cat < n; cat++) {
        const part = b.sum.mix[b.node * n + cat] / all * w;
        if (!part)
          continue;
        c.fillStyle = css(stateColour(p.cats[cat], dark));
        c.fillRect(from, y, part, h);
        from += part;
      }
    }
  }

  function drawBox(b, dark) {
    const c = frame.context, x = b.x * frame.width, w = Math.max(0.5, b.w * frame.width - (b.w * frame.width > 3 ? 1 : 0));
    const y = b.y * BOX - frame.top, f = p.frames[b.part.tree.frame[b.node]];

    if (y + BOX < 0 || y > frame.height)
      return;
    c.globalAlpha = b.above || (match && f && !match[b.part.tree.frame[b.node]]) ? 0.45 : 1;
    paint(c, b, x, y, w, dark);
    c.globalAlpha = 1;
    if (match && f && match[b.part.tree.frame[b.node]]) {
      c.strokeStyle = themeColour('mark');
      c.strokeRect(x + .5, y + .5, Math.max(1, w - 1), BOX - 2);
    }
    if (w > 24) {
      c.fillStyle = dark ? '#f0f3f6' : '#1b1f24';
      c.font = (!f || f.flags & OWN ? '600 ' : 'italic ') + '12px system-ui, sans-serif';
      drawText(c, label(b), x + 4, y + BOX / 2, w - 7);
    }
    if (at && at.node === b.node && at.tree === b.part.tree && at.group === b.group) {
      c.strokeStyle = dark ? '#fff' : '#000';
      c.lineWidth = 2;
      c.strokeRect(x + 1, y + 1, Math.max(2, w - 2), BOX - 3);
      c.lineWidth = 1;
    }
  }

  function text(b) {
    const f = p.frames[b.part.tree.frame[b.node]], n = p.cats.length, all = app.selection.total, total = b.sum.total[b.node];
    const lines = [label(b)];

    if (f)
      lines.push([f.file + (f.line ? ':' + f.line : ''), f.module].filter(Boolean).join('  '));
    lines.push(amount(p, total) + ', ' + percent(total, all) + (b.sum.self[b.node] ? '; itself ' + amount(p, b.sum.self[b.node]) : ''));
    if (compares()) {
      const d = change(b);
      lines.push(d ? app.per + ': ' + amount(p, d.before * 1e9) + ' before, ' + amount(p, d.after * 1e9) + ' after' : unknown());
    }
    p.cats.forEach((cat, c) => {
      const part = b.sum.mix[b.node * n + c];
      if (part > 0)
        lines.push(percent(part, total) + '  ' + cat);
    });
    return lines.filter(Boolean).join('\n');
  }

  /* What function F has, itself and with what it calls, and the standard errors. */
  function ofFunction(f) {
    const tree = app.calls(), row = functions(p, tree, weigh(p, tree, app.selection.weights)).find((r) => r.frame === f);
    const errors = functionErrors(p, tree, app.selection.of);
    const say = (key) => amount(p, row[key]) + (errors ? beside(p, errors[key][f]) : '');

    return row ? 'total ' + say('total') + ', itself ' + say('self') : 'nothing';
  }

  function draw() {
    const dark = isDark(), s = app.selection, width = Math.max(1, box.clientWidth);

    match = null;
    byId('found').textContent = '';
    arrange(width);
    if (state.query) {
      try {
        const pattern = new RegExp(state.query, 'i');
        match = p.frames.map((f) => pattern.test(f.name) || pattern.test(f.module));
        byId('found').textContent = percent(matched(parts().at(-1).tree, sums.at(-1).total, match) * sums.at(-1).total[0], s.total) + ' matched';
      } catch (error) {
        byId('found').textContent = error.message;
      }
    }
    frame = prepare(box, depth * BOX + 1);
    boxes.forEach((b) => drawBox(b, dark));
    byId('unzoom').hidden = !state.zoom && state.focus < 0;
    byId('total').textContent = s.total ? amount(p, s.total) + ' of ' + s.threads + ' ' + p.who + (s.threads === 1 ? '' : 's') +
      (state.focus >= 0 ? '; callers and callees of ' + p.frames[state.focus].name + ', ' + ofFunction(state.focus) : '') +
      (app.before ? '; ' + app.per + ' ' + amount(p, app.before.selection.total / app.before.scale * 1e9) + ' before, ' +
        amount(p, s.total / app.scale * 1e9) + ' now: red grew, blue shrank' : compares() ? '; ' + unknown() : '') +
      (s.hidden ? '; hidden: ' + amount(p, s.hidden) + ' of ' + s.idle + ' idle ' + p.who + 's' : s.idle && !state.hideIdle ? '; ' + s.idle + ' of them idle' : '') :
      'nothing is selected';
    byId('at').textContent = at ? boxes.filter((b) => isAt(b)).map(text).join('').replaceAll('\n', ' · ') : '';
  }

  const isAt = (b) => at && b.node === at.node && b.part.tree === at.tree && b.group === at.group;

  function boxAt(event) {
    const r = box.getBoundingClientRect(), x = (event.clientX - r.left) / frame.width;
    const y = Math.floor((event.clientY - r.top + box.scrollTop) / BOX);

    return boxes.find((b) => b.y === y && x >= b.x && x < b.x + b.w);
  }

  function zoomTo(b) {
    at = { node: b.node, tree: b.part.tree, group: b.group };
    if (b.group)
      app.update({ threads: new Set([b.group.index]), byThread: false, zoom: b.node });
    else if (state.focus >= 0)
      app.update({ focus: Math.max(-1, b.part.tree.frame[b.node]) });
    else
      app.update({ zoom: b.node });
  }

  function move(key) {
    const b = boxes.find(isAt) || boxes.find((o) => o.node === 0) || boxes[0];
    const into = (b && b.part.up) === (key === 'ArrowUp'), tree = b && b.part.tree;
    let to = null;

    if (!b)
      return;
    const near = (o) => o.group === b.group && o.part.tree === tree;
    if (!at)
      to = b;
    else if (key === 'ArrowDown' || key === 'ArrowUp')
      to = boxes.find((o) => near(o) && (into ? o.node && tree.parent[o.node] === b.node : o.node === tree.parent[b.node]));
    else
      to = boxes.filter((o) => o.y === b.y && (key === 'ArrowLeft' ? o.x < b.x : o.x > b.x)).sort((l, r) => (key === 'ArrowLeft' ? r.x - l.x : l.x - r.x))[0];
    if (to) {
      at = { node: to.node, tree: to.part.tree, group: to.group };
      if (to.y * BOX < box.scrollTop || (to.y + 1) * BOX > box.scrollTop + box.clientHeight)
        box.scrollTop = Math.max(0, to.y * BOX - box.clientHeight / 2);
      app.redraw();
    }
  }

  box.addEventListener('scroll', () => app.redraw());
  box.addEventListener('pointermove', (event) => {
    const b = frame && boxAt(event);
    tip(event, b ? text(b) : '');
  });
  box.addEventListener('pointerleave', (event) => tip(event, ''));
  box.addEventListener('click', (event) => {
    const b = boxAt(event);
    if (b)
      zoomTo(b);
  });
  box.addEventListener('keydown', (event) => {
    const b = boxes.find(isAt);
    if (event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (event.key.startsWith('Arrow'))
      move(event.key);
    else if (event.key === 'Enter' && b)
      zoomTo(b);
    else if (event.key === 'f' && b && b.part.tree.frame[b.node] >= 0)
      app.update({ focus: b.part.tree.frame[b.node], zoom: 0 });
    else if (event.key === 'Escape')
      app.update({ zoom: 0, focus: -1 });
    else
      return;
    event.preventDefault();
  });
  byId('search').oninput = (event) => app.update({ query: event.target.value });
  const toggles = { up: 'up', callers: 'callers', 'by-thread': 'byThread', 'by-module': 'byModule', 'hide-idle': 'hideIdle' };
  for (const [id, key] of Object.entries(toggles))
    byId(id).onclick = () => app.update({ [key]: !state[key], ...(key === 'callers' ? { zoom: 0, focus: -1 } : {}) });
  byId('unzoom').onclick = () => app.update({ zoom: 0, focus: -1 });
  return {
    draw,
    toggles,
    trees,
  };
}
