// SPDX-License-Identifier: Apache-2.0
// The file of test/unit/timeline_maker.h by speedscope's schema, and in speedscope
// itself.  NODE_MODULES is where the packages are, PROFILE the file.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { after, before, test } from 'node:test';

const require = createRequire(process.env.NODE_MODULES + '/'), puppeteer = require('puppeteer-core'), Ajv = require('ajv');
const SPEEDSCOPE = process.env.NODE_MODULES + '/node_modules/speedscope/dist/release/';
const text = readFileSync(process.env.PROFILE, 'utf8'), file = JSON.parse(text), place = mkdtempSync(tmpdir() + '/speedscope-');
let browser;

before(async () => {
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium', headless: true, protocolTimeout: 200000, timeout: 200000,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--enable-unsafe-swiftshader'],
  });
}, { timeout: 240000 });
after(async () => {
  rmSync(place, { recursive: true });
  await browser?.close();
});

test('the schema accepts it', () => {
  const validate = new Ajv({ strict: false }).compile(JSON.parse(readFileSync(SPEEDSCOPE + 'file-format-schema.json', 'utf8')));
  assert.ok(validate(file), JSON.stringify(validate.errors));
});

test('each thread has its time, in its order', () => {
  assert.deepEqual(file.profiles.map((p) => p.name), ['server (100)', 'work-1 (101)', 'work-2 (102)', file.profiles[3].name, 'idler (104)']);
  for (const p of file.profiles) {
    assert.equal(p.samples.length, p.weights.length);
    assert.equal(p.weights.reduce((a, b) => a + b, 0), 10e9);
    assert.equal(p.endValue - p.startValue, 10e9);
  }
});

test('the state is the last frame', () => {
  const names = (stack) => stack.map((f) => file.shared.frames[f].name);
  assert.deepEqual(names(file.profiles[0].samples[0]), ['main', 'serve', 'epoll_wait', '[waiting: poll]']);
  assert.deepEqual(names(file.profiles[0].samples[1]), ['main', 'serve', 'handle', 'parse_inline', '[running]']);
});

test('speedscope imports it', { timeout: 200000 }, async () => {
  const page = await browser.newPage(), faults = [];
  page.setDefaultTimeout(100000);
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('dialog', (dialog) => { faults.push(dialog.message()); dialog.dismiss(); });
  writeFileSync(place + '/x.js', `speedscope.loadFileFromBase64("x.speedscope.json", "${Buffer.from(text).toString('base64')}")`);
  await page.goto('file://' + SPEEDSCOPE + 'index.html#localProfilePath=' + place + '/x.js');
  await page.waitForFunction(() => document.body.innerText.includes('server (100)') || document.title.includes('server'), { timeout: 100000 });
  assert.deepEqual(faults, []);
});
