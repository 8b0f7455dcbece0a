import { globSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { isJsonObject } from '#kernel/json.ts'
import { defineAll, deployedDefinitions, objectPath } from '#testing/kubernetes/custom-resources.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'

interface Written {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

const examples = globSync('examples/*/*.yaml').sort()

const objectsIn = (file: string): Written[] =>
  parseAllDocuments(readFileSync(file, 'utf8')).flatMap((document) => {
    const value: unknown = document.toJS()
    return isJsonObject(value) && typeof value['kind'] === 'string' ? [value as unknown as Written] : []
  })

onKubernetes('the custom resources', (cluster) => {
  let namespace = ''
  beforeAll(async () => {
    await defineAll(cluster)
    namespace = await cluster.namespace()
  }, 120_000)

  const create = (object: Written | object, query = '') => {
    const { apiVersion, kind, metadata } = object as Written
    const placed = { ...object, metadata: { ...metadata, namespace } }
    const path = `${objectPath(apiVersion, kind, namespace)}?fieldValidation=Strict${query}`
    return cluster.call<{ message?: string }>('POST', path, placed)
  }

  test('are established, and structural', async () => {
    for (const { metadata } of deployedDefinitions().values()) {
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`
      const { status } = await cluster.must<{ status: { conditions: { type: string; status: string }[] } }>('GET', path)
      const holding = status.conditions.filter((one) => one.status === 'True').map(({ type }) => type)
      expect({ name: metadata.name, holding: holding.sort() }).toEqual({
        name: metadata.name,
        holding: ['Established', 'NamesAccepted'],
      })
    }
  })

  test.each(examples)('accept every object of %s, and store it unchanged', async (file) => {
    for (const object of objectsIn(file)) {
      const { status, body } = await create(object, '&dryRun=All')
      expect({ name: object.metadata.name, status, message: body.message }).toEqual({
        name: object.metadata.name,
        status: 201,
        message: undefined,
      })
      expect(body).toMatchObject({ spec: (object as unknown as { spec: unknown }).spec })
    }
  })

  test('accept the other version of an application or a workflow', async () => {
    const application = {
      apiVersion: 'openunison.tremolo.io/v1',
      kind: 'Application',
      metadata: { name: 'versions' },
      spec: {
        urls: [{ hosts: ['*'], uri: '/x', filterChain: [{ className: 'f', params: [{ name: 'a', value: 'b' }] }] }],
      },
    }
    expect((await create(application)).status).toBe(201)
    const path = objectPath('openunison.tremolo.io/v2', 'Application', namespace)
    expect(await cluster.must('GET', `${path}/versions`)).toMatchObject({ spec: application.spec })
  })

  describe('reject', () => {
    const target = (spec: unknown) => ({
      apiVersion: 'openunison.tremolo.io/v1',
      kind: 'Target',
      metadata: { name: 'wrong' },
      spec,
    })
    const attribute = (sourceType: string) => ({
      className: 'x',
      targetAttributes: [{ name: 'a', source: 'a', sourceType }],
    })

    test.each<[string, unknown, RegExp]>([
      ['a missing required field', {}, /spec\.className: Required value/],
      ['another type', { className: ['x'] }, /spec\.className in body must be of type string/],
      ['an unknown key', { className: 'x', parameters: [] }, /unknown field "spec\.parameters"/],
      ['an unknown value of an enumeration', attribute('usr'), /targetAttributes\[0\]\.sourceType.*"usr"/],
    ])('%s, with its path', async (_what, spec, message) => {
      const { status, body } = await create(target(spec))
      expect(status).toBeGreaterThanOrEqual(400)
      expect(body.message).toMatch(message)
    })

    test('but no placeholder of a value', async () => {
      expect((await create(target(attribute('#[SOURCE_TYPE]')), '&dryRun=All')).status).toBe(201)
    })
  })
})
