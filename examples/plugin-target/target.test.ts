import { test } from 'node:test'

// Where Gatehouse is; `gatehouse plugin test` says so itself.
const gatehouse = process.env['GATEHOUSE'] ?? new URL('../../', import.meta.url).href
const { pluginTargetConformance } = await import(new URL('src/server/plugin-conformance.ts', gatehouse).href)

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
