import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import CrashedPages from './test/support/run/crashed-pages.ts'
import FailedTests from './test/support/run/failed-tests.ts'
import { LongFirst } from './test/support/run/long-first.ts'

/** For tiers with real servers: their tests wait as long as a machine needs that is four times slower. */
const realParts = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 20_000 } },
}

/** Files of a worker share what they import: a new process per file would take a sixth of the CPU time. */
const shared = { isolate: false }

/** One project per test tier; `test/run.ts` runs them in order and reports each tier's time. */
export default defineConfig({
  test: {
    reporters: ['default', new CrashedPages(), new FailedTests()],
    sequence: { sequencer: LongFirst },
    projects: [
      {
        // The portal is a package of its own, which does not know the names that begin with a #.
        resolve: { alias: { '#contract': resolve('src/contract') } },
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/*.test.ts', 'bench/*.test.ts', 'portal/**/*.test.ts'],
          exclude: ['src/**/*.conformance.test.ts', 'src/**/*.kube.test.ts'],
          // Files of a worker share what they import, which would take a third of the tier's time.
          isolate: false,
          testTimeout: 20_000,
          hookTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'conformance',
          ...realParts,
          ...shared,
          include: ['src/**/*.conformance.test.ts'],
          globalSetup: ['test/support/run/postgres-setup.ts', 'test/support/run/slapd-setup.ts'],
        },
      },
      {
        test: {
          name: 'kube',
          ...realParts,
          include: ['src/**/*.kube.test.ts', 'test/kube/**/*.kube.test.ts'],
          globalSetup: [
            'test/support/run/kube-setup.ts',
            'test/support/run/helm-setup.ts',
            'test/support/run/openbao-setup.ts',
          ],
        },
      },
      {
        test: {
          name: 'stories',
          ...realParts,
          ...shared,
          include: ['test/stories/**/*.test.ts'],
          globalSetup: [
            'test/support/run/bundle-setup.ts',
            'test/support/run/postgres-setup.ts',
            'test/support/run/python-setup.ts',
            'test/support/run/slapd-setup.ts',
          ],
        },
      },
      {
        test: {
          name: 'release',
          ...realParts,
          include: ['test/release/**/*.release.test.ts'],
          globalSetup: ['test/support/run/helm-setup.ts'],
        },
      },
      {
        test: {
          name: 'browser',
          ...realParts,
          ...shared,
          include: ['test/browser/**/*.browser.test.ts'],
          globalSetup: ['test/support/run/bundle-setup.ts', 'test/support/run/chromium-setup.ts'],
          // The browser itself fails at times, which `CrashedPages` reports; a page that fails is not tried again.
          retry: { count: 1, condition: /Page crashed/ },
        },
      },
    ],
  },
})
