// SPDX-License-Identifier: Apache-2.0
// Measure a page of wallprof: measure.mjs PAGE prints, as JSON, milliseconds to the
// first picture, those of each of 20 redraws and 20 selections, and bytes of heap.
// NODE_MODULES is where the packages are.
import { createRequire } from 'node:module';

const puppeteer = createRequire(process.env.NODE_MODULES + '/')('puppeteer-core');
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium', headless: true, timeout: 120000, protocolTimeout: 300000,
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--js-flags=--expose-gc'],
});
const page = await browser.newPage();

await page.setViewport({ width: 1400, height: 1000 });
await page.goto('file://' + process.argv[2], { waitUntil: 'domcontentloaded', timeout: 120000 });
await page.waitForSelector('html[data-ready]', { timeout: 120000 });
const result = await page.evaluate(async () => {
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const app = window.wallprof, redraws = [], selections = [], ready = performance.now();

  await frames();
  for (let i = 0; i < 20; i++) {
    app.update({ view: [i * 1e9, (i + 100) * 1e9], zoom: i });
    await frames();
    redraws.push(app.took);
  }
  app.update({ view: [app.p.begin, app.p.end], zoom: 0 });
  for (let i = 0; i < 20; i++) {
    const from = performance.now();
    app.update({ range: [i * 1e9, (i + 50) * 1e9] });
    await frames();
    selections.push(performance.now() - from);
  }
  globalThis.gc?.();
  return { ready, redraws, selections };
});
const client = await page.createCDPSession();
await client.send('HeapProfiler.collectGarbage');
const heap = await client.send('Runtime.getHeapUsage');
console.log(JSON.stringify({ ...result, heap: heap.usedSize + (heap.backingStorageSize || 0), js: heap.usedSize }));
await browser.close();
