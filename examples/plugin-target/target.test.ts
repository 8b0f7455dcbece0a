import { test } from 'node:test'

// What runs the plug-in; `gatehouse plugin test` sets it.
const trial = process.env['GATEHOUSE_TRIAL'] ?? new URL('../../src/cli/trial/plugin-trial.ts', import.meta.url).href
const { pluginTargetConformance } = await import(trial)

pluginTargetConformance('plugin-target', {
  test,
  module: new URL('./target.ts', import.meta.url),
  // What `init` is given, such as { url: ['https://test.example'] }.
  parameters: {},
  // Attributes and groups that your system knows. Each case needs it empty: empty it in `before`.
  attributes: ['mail', 'givenName', 'phone'],
  groups: ['group1', 'group2', 'group3'],
  before: async () => {},
})
