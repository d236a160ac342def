// SPDX-License-Identifier: Apache-2.0
// The page of test/unit/timeline_maker.h in headless Chromium.
// NODE_MODULES is where the packages are, PAGE the page, DIFF one that compares its
// profile with itself.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';

const puppeteer = createRequire(process.env.NODE_MODULES + '/')('puppeteer-core');
const URL = 'file://' + process.env.PAGE, DIFF = 'file://' + process.env.DIFF, faults = [];
let browser, page;

before(async () => {
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium', headless: true, protocolTimeout: 200000, timeout: 200000,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--hide-scrollbars'],
  });
  page = await browser.newPage();
  page.setDefaultTimeout(100000);
  page.on('console', (message) => ['error', 'warn'].includes(message.type()) && faults.push('console: ' + message.text()));
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => /^(file|data|blob):/.test(request.url()) || faults.push('request: ' + request.url()));
  await page.setViewport({ width: 1180, height: 1000 });
}, { timeout: 240000 });
after(() => browser && browser.close());

/* Load the page anew; nothing may have gone wrong when it is left. */
async function open(hash = '', url = URL) {
  await page.goto('about:blank');
  await page.goto(url + hash);
  await page.waitForFunction(() => document.documentElement.dataset.ready || document.querySelector('#summary').innerText);
  assert.deepEqual(faults, []);
  await page.waitForSelector('html[data-ready]');
}

const text = (selector) => page.$eval(selector, (e) => e.innerText);
const state = (expression) => page.evaluate('(({ p, state, selection }) => ' + expression + ')(wallprof)');
/* What follows a click is drawn in the next frame. */
const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

async function press(...keys) {
  for (const key of keys)
    await page.keyboard.press(key);
  await drawn();
}

async function click(selector) {
  await page.click(selector);
  await drawn();
}

/* The row of a table whose last cell begins with NAME, as a list of texts. */
const row = (table, name) => page.$$eval(table + ' tbody tr', (rows, want) =>
  rows.map((r) => [...r.cells].map((c) => c.innerText)).find((cells) => cells.at(-1).startsWith(want)), name);

const bounded = (name, body) => test(name, { timeout: 200000 }, body);

bounded('the summary tells the truth of the recording', async () => {
  await open();
  assert.equal(await text('#title'), '/usr/bin/server --port 80');
  assert.match(await text('#when'), /process 100 .*recorded for 10\.0 s at 100 Hz · 5 threads, 1 of them idle/);
  const summary = await text('#summary');
  assert.match(summary, /38\.0 % waiting: poll, 24\.0 % waiting: lock, 20\.0 % runnable, 17\.8 % running, 0\.20 % waiting: membarrier/);
  assert.match(summary, /38\.0 % poll at serve\n24\.0 % lock at work\n0\.20 % membarrier at work/);
  assert.match(summary, /Lost\nticks: 998, 2 missed/);
  assert.match(await text('#total'), /^50\.0 s of 5 threads; 1 of them idle$/);
});

bounded('a deadlock at the end comes first', async () => {
  assert.match(await text('.alarm'), /deadlock: 2 threads wait for each other\nwork-[12] \(10[12]\) waits for 0xdead0 held by work-[12] \(10[12]\)/);
});

bounded('tables have what the canvases draw', async () => {
  assert.deepEqual((await row('#functions', 'epoll_wait')).slice(0, 7), ['38.0 %', '', '38.0 %', '', '0 %', '38.0 %', '19.0 s']);
  assert.deepEqual((await row('#functions', 'main')).slice(0, 7), ['0 %', '', '40.0 %', '', '2.0 %', '38.0 %', '20.0 s']);
  /* 600 samples of each worker's 605 divided its waits: 26 ms each. */
  assert.deepEqual((await row('#functions', '__lll_lock_wait')).slice(0, 4), ['24.0 %', '±0.1', '24.0 %', '±0.1']);
  assert.equal(await page.$eval('#functions th:nth-child(2) button', (e) => e.ariaLabel), 'standard error of self, in points');
  assert.match((await row('#functions', 'hot;loop'))[7], /^hot;loop\\x0a\(int\)/);
  await click('#tab-threads');
  assert.deepEqual((await row('#threads', 'work-1')).slice(0, 5), ['39.5 %', '0 %', '60.5 %', '10.0 s', '101']);
  await click('#tab-recording');
  assert.match(await text('#recording'), /ticks: 998, 2 missed/);
  await click('#tab-functions');
});

bounded('a range that is dragged is that time of every thread', async () => {
  await open();
  const box = await page.$eval('#lanes', (e) => { const r = e.getBoundingClientRect(); return { x: r.x, y: r.y, width: e.clientWidth }; });
  const x = (share) => box.x + 180 + share * (box.width - 180);
  await page.mouse.move(x(0.2), box.y + 90);
  await page.mouse.down();
  await page.mouse.move(x(0.4), box.y + 100, { steps: 3 });
  await page.mouse.up();
  await drawn();
  const [from, to] = await state('state.range');
  assert.ok(Math.abs(from / 1e9 - 2) < 0.03 && Math.abs(to / 1e9 - 4) < 0.03, `${from} ${to}`);
  assert.ok(Math.abs(await state('selection.total') - 5 * (to - from)) < 1);
  assert.match(await text('#total'), /^(9\.9\d|10\.\d) s of 5 threads/);
  assert.match(await page.evaluate('location.hash'), /t=\d+-\d+/);
  await click('#whole');
  assert.equal(await state('selection.total'), 50e9);
});

bounded('two ranges of one recording are compared', async () => {
  await open();
  await page.evaluate('wallprof.update({ range: [0, 5e9] })');
  await drawn();
  await page.focus('#lanes');
  await press('b');
  assert.deepEqual(await state('[state.before, state.range]'), [[0, 5e9], null]);
  await page.evaluate('wallprof.update({ range: [8e9, 10e9] })');
  await drawn();
  assert.match(await text('#range'), /^selected: 8\.00 s to 10\.0 s \(2\.00 s\), compared with 0 ns to 5\.00 s \(5\.00 s\)$/);
  assert.match(await text('#total'), /^10\.0 s of 5 threads; per second 5\.00 s before, 5\.00 s now: red grew, blue shrank/);
  /* What each function had of a second, by the sums of the two ranges alone. */
  const rate = async (range, name) => {
    await open('#t=' + range.join('-'));
    const [n, unit] = (await row('#functions', name))[6].split(' ');
    return (unit === 's' ? 1 : 1e-3) * n / (range[1] - range[0]) * 1e9;
  };
  const then = await rate([0, 5e9], 'epoll_wait'), now = await rate([8e9, 10e9], 'epoll_wait');
  await open('#t=8000000000-10000000000&b=0-5000000000');
  const [change, unit, error] = (await row('#functions', 'epoll_wait'))[0].split(' ');
  assert.match(error, /^±/);
  assert.ok(Math.abs(change * (unit === 's' ? 1 : 1e-3) - (now - then)) < 0.02, `${change} ${unit}, ${then} to ${now}`);
  await click('#compare');
  assert.equal(await state('state.before'), null);
  assert.doesNotMatch(await text('#total'), /per second/);
});

/* What is said of each thread's box, by thread. */
async function boxesOfThreads() {
  const said = [];
  await page.focus('#boxes');
  await press('ArrowDown');
  while (!said.includes(await text('#at'))) {
    said.push(await text('#at'));
    await press('ArrowRight');
  }
  return said;
}

bounded('a thread is compared with itself', async () => {
  await open('#t=8000000000-10000000000&b=0-5000000000&v=t');
  const said = await boxesOfThreads();
  assert.equal(said.length, 5);
  for (const line of said)
    assert.match(line, /per second: 1\.00 s before, 1\.00 s after/);
});

bounded('a profile has not changed since itself, nor have its threads', async () => {
  for (const threads of ['', '&th=1', '&th=0,2,4']) {
    await open('#' + threads, DIFF);
    const changes = await page.$$eval('#functions tbody tr', (rows) => rows.map((r) => [...r.cells].slice(0, 2).map((c) => c.innerText.split(' ±')[0])));
    assert.ok(changes.length > 1 && changes.flat().every((c) => c === '0 ns'), threads + ': ' + changes);
    const [, before, now] = (await text('#total')).match(/per second (\S+ s) before, (\S+ s) now/);
    assert.equal(before, now);
  }
  await open('#v=t', DIFF);
  const said = await boxesOfThreads();
  assert.equal(said.length, 5);
  for (const line of said)
    assert.match(line, /per second: 1\.00 s before, 1\.00 s after/);
  /* Goroutines of one name. */
  await open('', DIFF);
  await page.evaluate(() => {
    for (const t of [...wallprof.p.threads, ...wallprof.base.threads])
      Object.assign(t, { name: 'same', tid: 0 });
    wallprof.update({ threads: new Set([1]) });
  });
  await drawn();
  assert.match(await text('#total'), /^10\.0 s of 1 threads?; not compared: others have the same name/);
});

bounded('paper has all of it in light colours, and the screen comes back', async () => {
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  await open();
  const seen = () => page.evaluate(() => ({
    back: getComputedStyle(document.body).backgroundColor, hidden: document.querySelectorAll('[role=tabpanel][hidden]').length,
    rows: document.querySelectorAll('#functions tbody tr').length, dark: getComputedStyle(document.documentElement).getPropertyValue('--fore'),
  }));
  const before = await seen();
  const shown = page.evaluate(() => new Promise((done) => addEventListener('afterprint', () => done(window.printed))));
  await page.evaluate(() => addEventListener('beforeprint', () => {
    window.printed = { hidden: document.querySelectorAll('[role=tabpanel][hidden]').length, fore: getComputedStyle(document.documentElement).getPropertyValue('--fore'),
      back: getComputedStyle(document.body).backgroundColor, text: document.body.innerText };
  }));
  const paper = await page.pdf({ format: 'A4' }), printed = await shown;
  assert.ok(paper.length > 20000);
  assert.deepEqual([printed.hidden, printed.fore, printed.back], [0, '#1b1f24', 'rgb(255, 255, 255)']);
  for (const want of ['epoll_wait', 'work-1', 'ticks: 998, 2 missed'])
    assert.ok(printed.text.includes(want), want);
  await drawn();
  assert.deepEqual(await seen(), before);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
});

bounded('a search tells its share', async () => {
  await open();
  await page.type('#search', 'epoll|parse_inl');
  await drawn();
  assert.equal(await text('#found'), '40.0 % matched');
  assert.equal((await page.$$('#functions tbody tr')).length, 2);
  await page.type('#search', '(');
  await drawn();
  assert.match(await text('#found'), /Invalid regular expression/);
});

bounded('idle threads hide with one click, and how much is told', async () => {
  await open();
  await click('#hide-idle');
  assert.match(await text('#total'), /^40\.0 s of 5 threads; hidden: 10\.0 s of 1 idle threads/);
  assert.equal(await page.$eval('#hide-idle', (e) => e.getAttribute('aria-pressed')), 'true');
});

bounded('the legend filters', async () => {
  await open();
  await page.evaluate(() => [...document.querySelectorAll('#legend button')].find((b) => b.innerText.startsWith('runnable')).click());
  await drawn();
  assert.equal(await state('selection.total'), 40e9);
  assert.match(await page.evaluate('decodeURIComponent(location.hash)'), /off=runnable/);
});

bounded('all of it works by the keyboard', async () => {
  await open();
  await page.focus('#lanes');
  await press('Enter', 'ArrowDown', ']', 'r');
  const [pick, range] = [await state('state.pick'), await state('state.range')];
  assert.equal(pick.row, 1);
  assert.ok(range[1] > range[0]);
  assert.match(await text('#pick'), /since /);
  await press('t', '+', '+', 'ArrowRight', '-');
  assert.equal(await state('state.threads.size'), 1);
  const view = await state('state.view');
  assert.ok(view[1] - view[0] < 7e9 && view[0] > 0);
  await press('Escape');
  assert.deepEqual(await state('[state.range, state.threads, state.view]'), [null, null, [0, 10e9]]);
  await press('/');
  await page.keyboard.type('work');
  await drawn();
  assert.equal(await text('#found'), '24.2 % matched');
  await page.focus('#boxes');
  await press('ArrowDown', 'ArrowDown');
  const line = await text('#at');
  assert.match(line, /^(main|start_thread|hot)/);
  await press('Enter');
  assert.ok(await state('state.zoom') > 0);
  await press('f');
  assert.ok(await state('state.focus') >= 0);
  await press('Escape');
  assert.deepEqual(await state('[state.zoom, state.focus]'), [0, -1]);
});

bounded('an address leads to the same picture', async () => {
  await open();
  await click('#callers');
  await click('#by-thread');
  await page.evaluate('wallprof.update({ range: [1e9, 2e9], threads: new Set([1, 2]), query: "lock" })');
  await drawn();
  const hash = await page.evaluate('location.hash'), total = await text('#total');
  await open(hash);
  assert.equal(await text('#total'), total);
  assert.equal(await page.$eval('#search', (e) => e.value), 'lock');
  assert.equal(await page.evaluate('location.hash'), hash);
  /* Also if it changes while the page is open. */
  await page.evaluate('location.hash = "#q=epoll&f=work"');
  await page.waitForFunction('wallprof.state.query === "epoll"');
  assert.deepEqual(await page.$$eval('#search, #filter', (all) => Object.fromEntries(all.map((e) => [e.id, e.value]))), { search: 'epoll', filter: 'work' });
  await open('#t=zzz&z=9-1&th=-5,x&i=99999,-1&n=1e9&fn=77777&off=nothing&v=%00&q=%28');
  assert.match(await text('#total'), /^50\.0 s of 5 threads/);
});

bounded('every view draws boxes', async () => {
  await open();
  for (const id of ['up', 'callers', 'by-thread', 'by-module', 'hide-idle'])
    await click('#' + id);
  const colours = await page.$eval('#boxes canvas', (c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size);
  assert.ok(colours > 4, String(colours));
});

bounded('light and dark follow the system', async () => {
  const back = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  await open();
  assert.equal(await back(), 'rgb(13, 17, 23)');
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
  await drawn();
  assert.equal(await back(), 'rgb(255, 255, 255)');
});

bounded('no text is smaller than 11 pixels', async () => {
  const sizes = await page.$$eval('body *', (all) => all.map((e) => parseFloat(getComputedStyle(e).fontSize)));
  assert.ok(Math.min(...sizes) >= 11);
});

bounded('nothing was asked of a network, nothing went wrong', () => {
  assert.deepEqual(faults, []);
});
