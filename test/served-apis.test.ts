import { describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { loadConfiguration } from '#config/load/load.ts'
import type { JsonObject } from '#kernel/json.ts'
import { servedApis } from '#requests/pipeline/served-apis.ts'
import type { ServedApi } from '#sdk/filter/filter-api.ts'
import { loadText } from '#testing/modules/check-text.ts'
import { application, registrationUrl } from '#testing/stories/story-documents.ts'

async function apisOf(folder: string): Promise<readonly ServedApi[]> {
  const { configuration } = await loadConfiguration({ folder, catalog, environment: {}, strictSecrets: true })
  if (configuration === undefined) throw new Error(`${folder} does not load`)
  return servedApis(configuration)
}

const found = (apis: readonly ServedApi[]) =>
  Object.fromEntries(apis.map(({ name, api, credentials }) => [name, [api.title, credentials]]))

describe('the APIs of a configuration', () => {
  test('are those of its filters, with the credentials of their chains', async () => {
    const session = [{ kind: 'session', cookie: 'portal' }]
    expect(found(await apisOf('examples/portal'))).toMatchObject({
      'portal-main': ['Main API', session],
      'api-account': ['Account API', session],
      'api-token': ['Token API', session],
      'api-register': ['Registration API', []],
      'portal-sessioncheck': ['Session check API', session],
    })
    expect(found(await apisOf('examples/call-workflow'))).toMatchObject({
      'call-workflow': ['Call-workflow API', [{ kind: 'bearer' }]],
      'workflow-admin': ['Workflow administration API', [{ kind: 'bearer' }]],
    })
  })

  test('of machines are for administrators only', async () => {
    const apis = [...(await apisOf('examples/scim')), ...(await apisOf('examples/token-service'))]
    const titles = apis.map(({ api }) => api.title)
    expect(titles).toEqual(expect.arrayContaining(['SCIM 2.0 gateway', 'Token exchange API', 'Token issuer documents']))
    expect(apis.filter(({ api }) => api.userDocuments !== undefined).map(({ api }) => api.title)).toEqual([])
  })

  test('have different names, and no regular expression for an address', () => {
    const { configuration } = loadText(
      `
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: w }
spec: { tasks: [] }
---
${application('forms', [
  registrationUrl('/a/register', { workflowName: 'w' }, { hosts: ['a.example.com'] }),
  registrationUrl('/a-register/', { workflowName: 'w' }, { hosts: ['b.example.com'] }),
  registrationUrl('^/c/.*$', { workflowName: 'w' }, { regex: true }),
])}`,
      catalog,
    )
    if (configuration === undefined) throw new Error('the configuration does not load')
    expect(servedApis(configuration).map(({ name, mount, hosts }) => [name, mount, hosts])).toEqual([
      ['a-register', '/a/register', ['a.example.com']],
      ['a-register-2', '/a-register', ['b.example.com']],
    ])
  })
})

test.each(['portal', 'scim', 'token-service', 'call-workflow', 'own-issuer', 'second-factors'])(
  'the documents of examples/%s are whole',
  async (example) => {
    const apis = await apisOf(`examples/${example}`)
    expect(apis.length).toBeGreaterThan(0)
    for (const { name, api, mount } of apis) {
      const place = { origin: 'https://x', ...api.place(mount) }
      const documents = [api.documents, ...(api.userDocuments === undefined ? [] : [api.userDocuments])]
      for (const document of documents.map((one) => one.openApi(place))) {
        expect([name, missingReferences(document)]).toEqual([name, []])
        expect(Object.keys(document['paths'] as JsonObject)).not.toEqual([])
        expect(Object.keys(document['paths'] as JsonObject).filter((path) => !path.startsWith('/'))).toEqual([])
      }
    }
  },
)

/** References that lead nowhere, and definitions that nothing refers to. */
function missingReferences(document: JsonObject): string[] {
  const text = JSON.stringify(document)
  const refs = new Set(Array.from(text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g), ([, name = '']) => name))
  const { schemas } = document['components'] as { schemas: JsonObject }
  return [
    ...[...refs].filter((name) => !Object.hasOwn(schemas, name)),
    ...Object.keys(schemas).filter((name) => !refs.has(name)),
  ]
}
