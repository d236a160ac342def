/* SPDX-License-Identifier: Apache-2.0 */
/* colours.js - the colour of a state, of a module, of a difference. */

/* Hue and saturation: what costs time stands out, what idles is pale. */
const STATES = {
  running: [135, 55], runnable: [42, 95], stopped: [0, 0], exiting: [0, 0],
  'waiting: lock': [2, 75], 'waiting: futex': [345, 60], 'waiting: condvar': [325, 42], 'waiting: semaphore': [18, 70],
  'waiting: join': [290, 35], 'waiting: barrier': [305, 45], 'waiting: sleep': [222, 28], 'waiting: poll': [208, 45],
  'waiting: socket': [188, 52], 'waiting: pipe': [172, 40], 'waiting: tty': [160, 25], 'waiting: file': [265, 50],
  'waiting: disk': [280, 65], 'waiting: mmap-lock': [352, 65], 'waiting: child': [250, 40], 'waiting: signal': [238, 30], 'waiting: timer': [228, 35],
  'waiting: page-fault': [25, 80], 'waiting: frozen': [205, 35], 'waiting: core-dump': [40, 24],
};

function hash(text) {
  let h = 7;

  for (let i = 0; i < text.length; i++)
    h = (h * 31 + text.charCodeAt(i)) >>> 0;
  return h;
}

/* [red, green, blue] of HUE, SATURATION (0 to 100), LIGHTNESS. */
function rgb(hue, saturation, lightness) {
  const s = saturation / 100, l = lightness / 100, a = s * Math.min(l, 1 - l);
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };

  return [part(0), part(8), part(4)];
}

export const css = (c) => 'rgb(' + c.join(' ') + ')';

/* Dark text is readable on all of them in light mode, light text in dark mode. */
export function stateColour(cat, dark) {
  const [hue, saturation] = Object.hasOwn(STATES, cat) ? STATES[cat] : [hash(cat) % 360, 35];

  return rgb(hue, dark ? saturation * 0.8 : saturation, dark ? 33 : 74);
}

export function moduleColour(module, own, dark) {
  return own ? rgb(28, 80, dark ? 34 : 72) : rgb(hash(module) % 360, module ? 32 : 0, dark ? 32 : 80);
}

/* CHANGE from -1 (gone, blue) to 1 (new, red). */
export function changeColour(change, dark) {
  const strength = Math.min(1, Math.sqrt(Math.abs(change)));

  return rgb(change > 0 ? 4 : 212, 75 * strength, dark ? 26 + 16 * strength : 88 - 20 * strength);
}
