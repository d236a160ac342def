// SPDX-License-Identifier: Apache-2.0
// The same of d3-flame-graph, with the calls of a page of wallprof: measure_d3.mjs PAGE.
// It has no timeline and no states: one tree of all threads, without boxes below a pixel.
// NODE_MODULES is where the packages are, D3_MODULES where it is.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';
import * as model from '../../src/output/html/model.js';
import * as trees from '../../src/output/html/trees.js';

const m = { ...model, ...trees };

const require = createRequire(process.env.NODE_MODULES + '/'), puppeteer = require('puppeteer-core');
const packed = /id="data">([^<]*)</.exec(readFileSync(process.argv[2], 'utf8'))[1];
const p = m.decode(gunzipSync(Buffer.from(packed, 'base64')));
const { weights } = m.select(p, { range: null, threads: null, off: new Set(), hideIdle: false });
const tree = m.callTree(p, weights), sum = m.weigh(p, tree, weights);
const nodes = Array.from(tree.frame, (f, i) => ({ name: f < 0 ? 'all' : p.frames[f].name, value: sum.total[i] / 1e6, children: [] }));
nodes.forEach((node, i) => i && nodes[tree.parent[i]].children.push(node));

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium', headless: true, timeout: 120000, protocolTimeout: 600000,
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});
const page = await browser.newPage(), place = process.env.D3_MODULES + '/node_modules/';

await page.setViewport({ width: 1400, height: 1000 });
await page.setContent('<div id="chart"></div>');
for (const name of ['internmap', 'd3-array', 'd3-color', 'd3-dispatch', 'd3-ease', 'd3-format', 'd3-hierarchy', 'd3-interpolate', 'd3-time',
  'd3-time-format', 'd3-timer', 'd3-scale', 'd3-selection', 'd3-transition'])
  await page.addScriptTag({ path: place + name + '/dist/' + name + '.min.js' });
await page.addScriptTag({ path: place + 'd3-flame-graph/dist/d3-flamegraph.umd.min.js' });
const result = await page.evaluate(async (data) => {
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const d3 = window.d3, make = window.flamegraph.default || window.flamegraph.flamegraph;
  const chart = make().width(1380).transitionDuration(0).minFrameSize(1), from = performance.now(), redraws = [];

  d3.select('#chart').datum(data).call(chart);
  await frames();
  const ready = performance.now() - from;
  const first = d3.select('#chart').selectAll('g').data().filter((d) => d.depth === 2);
  for (let i = 0; i < 5 && first.length; i++) {
    const start = performance.now();
    chart.zoomTo(first[i % first.length]);
    await frames();
    redraws.push(performance.now() - start);
  }
  return { ready, redraws };
}, nodes[0]);
const client = await page.createCDPSession();
await client.send('HeapProfiler.collectGarbage');
const heap = await client.send('Runtime.getHeapUsage');
console.log(JSON.stringify({ ...result, heap: heap.usedSize + (heap.backingStorageSize || 0) }));
await browser.close();
