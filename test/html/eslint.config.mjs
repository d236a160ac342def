// SPDX-License-Identifier: Apache-2.0
// Rules for the page's modules and their tests.  NODE_MODULES is where the
// packages are.
import { createRequire } from 'node:module';

const js = createRequire(process.env.NODE_MODULES + '/')('@eslint/js');
const browser = ['Blob', 'Buffer', 'DecompressionStream', 'HTMLInputElement', 'Response', 'TextDecoder', 'TextEncoder', 'URLSearchParams', 'addEventListener', 'atob',
  'console', 'document', 'getComputedStyle', 'history', 'innerHeight', 'innerWidth', 'location', 'matchMedia', 'performance', 'process',
  'requestAnimationFrame', 'window', 'wallprof'];

export default [{
  ...js.configs.recommended,
  languageOptions: { ecmaVersion: 2023, sourceType: 'module', globals: Object.fromEntries(browser.map((name) => [name, 'readonly'])) },
  linterOptions: { reportUnusedDisableDirectives: 'error' },
  rules: {
    ...js.configs.recommended.rules,
    'prefer-const': 'error', 'no-var': 'error', eqeqeq: 'error', 'no-shadow': 'off', 'no-implicit-globals': 'error', 'no-eval': 'error',
    'no-unsanitized': 'off', 'max-len': ['error', 170], 'max-lines-per-function': ['error', 350], semi: ['error', 'always'],
    quotes: ['error', 'single', { avoidEscape: true }], 'no-restricted-properties': ['error', { property: 'innerHTML' }, { property: 'outerHTML' },
      { property: 'insertAdjacentHTML' }, { object: 'document', property: 'write' }],
  },
}];
