import { resolve } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import CrashedPages from './test/support/run/crashed-pages.ts'
import { LongFirst } from './test/support/run/long-first.ts'
import RunReport from './test/support/run/run-report.ts'
import { tiers } from './test/tiers.ts'

/** For tiers with real servers: their tests wait as long as a machine needs that is four times slower. */
const realParts = {
  testTimeout: 240_000,
  hookTimeout: 240_000,
  expect: { poll: { timeout: 20_000 } },
}

/** Long enough for a busy machine that is four times slower. */
const unit = { testTimeout: 60_000, hookTimeout: 60_000 }

/** Files of a worker share what they import: a new process per file would take a sixth of the CPU time. */
const shared = { isolate: false }

const setup = (...names: readonly string[]): { globalSetup: string[] } => ({
  globalSetup: names.map((name) => `test/support/run/${name}-setup.ts`),
})

/** What the project of a tier has beside its files. */
const projects: Readonly<Record<string, TestProjectInlineConfiguration>> = {
  unit: { test: { ...shared, ...unit } },
  portal: {
    // The portal does not know the names that begin with a #.
    resolve: {
      alias: Object.fromEntries(['features', 'sdk', 'kernel'].map((room) => [`#${room}`, resolve('src', room)])),
    },
    test: { ...shared, ...unit },
  },
  conformance: { test: { ...realParts, ...shared, ...setup('postgres', 'slapd') } },
  programs: { test: realParts },
  kube: { test: { ...realParts, ...shared, ...setup('bundle', 'kube', 'helm', 'definitions', 'openbao') } },
  stories: { test: { ...realParts, ...shared, ...setup('bundle', 'postgres', 'python', 'slapd') } },
  // Their gateways run as emulated users of unpacked systems, and their commands start one after the other.
  release: { test: { ...realParts, testTimeout: 300_000, ...setup('release', 'helm', 'kube') } },
  browser: {
    test: {
      ...realParts,
      ...shared,
      ...setup('bundle', 'chromium'),
      // Journeys of many steps: a step that hangs fails after a minute and is named.
      testTimeout: 300_000,
      // The browser itself fails at times, which `CrashedPages` reports; a page that fails is not tried again.
      retry: { count: 1, condition: /Page crashed/ },
    },
  },
}

/** One project per tier with test files; `test/run.ts` runs them. */
export default defineConfig({
  test: {
    reporters: [new RunReport(), new CrashedPages()],
    sequence: { sequencer: LongFirst },
    // Only what is worth a look is shown with its time.
    slowTestThreshold: 5000,
    projects: tiers.flatMap(({ name, include, exclude = [] }) =>
      include === undefined
        ? []
        : [
            {
              ...projects[name],
              test: { ...projects[name]?.test, name, include: [...include], exclude: [...exclude] },
            },
          ],
    ),
  },
})
