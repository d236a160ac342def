// SPDX-License-Identifier: Apache-2.0
// The same of speedscope with a file of its own format: measure_speedscope.mjs FILE.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';

const puppeteer = createRequire(process.env.NODE_MODULES + '/')('puppeteer-core');
const place = mkdtempSync(tmpdir() + '/speedscope-'), script = place + '/x.js';
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium', headless: true, timeout: 120000, protocolTimeout: 600000,
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--enable-unsafe-swiftshader'],
});
const page = await browser.newPage();

writeFileSync(script, `speedscope.loadFileFromBase64("x.speedscope.json", "${readFileSync(process.argv[2]).toString('base64')}")`);
await page.goto('file://' + process.env.NODE_MODULES + '/node_modules/speedscope/dist/release/index.html#localProfilePath=' + script, { timeout: 300000 });
await page.waitForFunction(() => document.body.innerText.includes('worker-0'), { timeout: 300000, polling: 100 });
const ready = await page.evaluate(() => performance.now()), client = await page.createCDPSession();
await client.send('HeapProfiler.collectGarbage');
const heap = await client.send('Runtime.getHeapUsage');
console.log(JSON.stringify({ ready, heap: heap.usedSize + (heap.backingStorageSize || 0) }));
await browser.close();
rmSync(place, { recursive: true });
