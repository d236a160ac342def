// SPDX-License-Identifier: Apache-2.0
// The page and the text report tell the same standard errors of a recording.  PAGE is
// the page, REPORT the text.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import * as e from '../../src/output/html/errors.js';
import * as model from '../../src/output/html/model.js';
import * as trees from '../../src/output/html/trees.js';

const m = { ...model, ...trees };

const packed = /id="data">([^<]*)</.exec(readFileSync(process.env.PAGE, 'utf8'))[1];
const p = m.decode(gunzipSync(Buffer.from(packed, 'base64'))), s = m.select(p, { range: null, threads: null, off: new Set(), hideIdle: false });
const tree = m.callTree(p, s.weights), rows = m.functions(p, tree, m.weigh(p, tree, s.weights));
const errors = e.functionErrors(p, tree, s.of);
/* Rows of the text's table of functions: [self %, its error, name]. */
const told = readFileSync(process.env.REPORT, 'utf8').split('Functions by their own time')[1].split('\n\n')[0].split('\n').map((l) =>
  / ([0-9.]+) % (?:±([0-9.]+))? +[0-9.]+ % +[0-9.]+ % {2}([^ []+)/.exec(l)).filter(Boolean).map(([, share, error, name]) => [Number(share), Number(error || 0), name]);

for (const [share, error, name] of told)
  test(name, () => {
    /* Two modules may have a function of that name. */
    const near = (value, want, step) => Math.abs(100 * value / s.total - want) <= step;
    const row = rows.filter((r) => p.frames[r.frame].name === name);
    assert.ok(row.some((r) => near(r.self, share, 0.051) && near(errors.self[r.frame], error, error < 1.95 ? 0.051 : 0.51)),
      `${share} ±${error}: ${row.map((r) => [r.self, errors.self[r.frame]].map((v) => 100 * v / s.total))}`);
  });

test('some have an error that is told', () => assert.ok(told.filter((t) => t[1]).length > 1));
