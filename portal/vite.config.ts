import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

/** Addresses in the pages are relative, so that the build works at any mount. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  resolve: {
    alias: Object.fromEntries(
      ['features', 'sdk', 'kernel'].map((room) => [
        `#${room}`,
        fileURLToPath(new URL(`../src/${room}`, import.meta.url)),
      ]),
    ),
  },
  build: {
    target: 'es2023',
    // No inline data: the policy of the pages allows none but icons.
    assetsInlineLimit: 0,
    // Its polyfill is a script for browsers that are not supported.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    manifest: 'manifest.json',
    // One file for the shared parts of most pages, instead of dozens of small ones before the first paint. Long lists
    // and the console, which alone has cards, are not among them.
    rolldownOptions: {
      // Constants, such as the routes of operations, are written where they are used.
      optimization: { inlineConst: true },
      output: {
        codeSplitting: {
          groups: [{ name: 'shared', test: /^(?!.*(?:virtual|pages\/console|components\/Card\/))/, minShareCount: 8 }],
        },
      },
    },
  },
})
