/* SPDX-License-Identifier: Apache-2.0 */
/* canvas.js - a canvas as large as its scrolling box shows, and small parts. */

export const byId = (id) => document.getElementById(id);

/* An element NAME with attributes and children; strings become text, never HTML. */
export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);

  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function')
      e[key] = value;
    else if (value !== false && value !== null)
      e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

export const isPrinted = () => document.documentElement.hasAttribute('data-print');
export const isDark = () => !isPrinted() && matchMedia('(prefers-color-scheme: dark)').matches;
export const themeColour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

/* The canvas of BOX, of which HEIGHT pixels can be scrolled to: {context, width,
 * height, top, ratio}. */
export function prepare(box, height) {
  const canvas = box.querySelector('canvas'), ratio = window.devicePixelRatio || 1;

  box.firstElementChild.style.height = height + 'px';
  const shown = Math.max(1, Math.min(height, box.clientHeight)), width = Math.max(1, box.clientWidth);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(shown * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(shown * ratio);
    canvas.style.width = width + 'px';
    canvas.style.height = shown + 'px';
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, shown);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  return { context, width, height: shown, top: box.scrollTop, ratio };
}

const widths = new Map();

/* Draw TEXT in WIDTH pixels, cut at its end, or not at all. */
export function drawText(context, text, x, y, width) {
  const one = widths.get(context.font) || context.measureText('n').width;
  let n = Math.floor(width / one * 1.25);

  widths.set(context.font, one);
  if (n < 3)
    return;
  if (text.length <= n && (text.length <= n * 0.6 || context.measureText(text).width <= width)) {
    context.fillText(text, x, y);
    return;
  }
  n = Math.min(n, text.length);
  while (n > 2 && context.measureText(text.slice(0, n) + '…').width > width)
    n -= Math.max(1, n >> 4);
  if (n > 2)
    context.fillText(text.slice(0, n) + '…', x, y);
}

/* Show TEXT beside the pointer; '' hides it. */
export function tip(event, text) {
  const box = byId('tip');

  box.hidden = !text;
  if (!text)
    return;
  box.textContent = text;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6)) + 'px';
  box.style.top = (event.clientY + 18 + height > innerHeight ? Math.max(4, event.clientY - height - 10) : event.clientY + 18) + 'px';
}
