import { defineConfig } from 'vitest/config'

/** One project per test tier; `test/run.ts` runs them in order and reports each tier's time. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/*.test.ts'],
          exclude: ['src/**/*.conformance.test.ts'],
        },
      },
      {
        test: {
          name: 'conformance',
          include: ['src/**/*.conformance.test.ts'],
          globalSetup: ['test/support/postgres-setup.ts'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'stories',
          include: ['test/stories/**/*.test.ts'],
          globalSetup: ['test/support/postgres-setup.ts', 'test/support/python-setup.ts'],
          testTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
