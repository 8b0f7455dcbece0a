import { describe, expect, it } from 'vitest'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { expectDescribedBy } from '#testing/gateway/api-contract.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { type FakeRequest, fakeRequest } from '#testing/modules/fake-request.ts'
import { issuingFixture } from '#testing/sts/token-issuing-fixture.ts'
import stsDocuments from './documents.ts'

async function start(document: string) {
  const fixture = await issuingFixture()
  const prepared = stsDocuments.prepare(fakeParams({ endpoint: 'cloud', document }), noIssues(), fakeParseContext())
  const filter = await prepared.create(Object.assign(fakeModuleHost(), { tokens: fixture.issuing }))
  const exchange = { application: 'sts', mount: '/x', pathInfo: '', subject: subject('uid=Anonymous,o=Tremolo') }
  const get = async (request: FakeRequest = {}, pathInfo = ''): Promise<GatewayResponse> => {
    const all = { ...exchange, pathInfo, request: fakeRequest(request) }
    const answer = await filter.handle(all, async () => ({ status: 404, headers: {} }))
    expectDescribedBy(prepared, request.method ?? 'GET', pathInfo, answer)
    return answer
  }
  return { get, documents: await fixture.keys.documents('cloud') }
}

const json = ({ body }: GatewayResponse): unknown => JSON.parse(String(body))

describe('filters.StsDocuments', () => {
  it('C11: returns both documents as objects, with a type, a lifetime and a tag', async () => {
    const { get, documents } = await start('both')
    const answer = await get()
    expect(json(answer)).toEqual({ discovery: documents.discovery, keys: documents.keys })
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'public, max-age=300',
      etag: expect.stringMatching(/^".+"$/),
    })
    const again = await get({ headers: { 'if-none-match': `"x", ${answer.headers['etag']}` } })
    expect([again.status, again.body]).toEqual([304, undefined])
  })

  it('C11: returns them as files, keys first', async () => {
    const { get, documents } = await start('both')
    const { files } = json(await get({ url: 'http://localhost/?format=files' })) as {
      files: { path: string; contentType: string; cacheControl: string; content: string }[]
    }
    expect(files.map(({ path }) => path)).toEqual(['certs', '.well-known/openid-configuration'])
    expect(files.map(({ content }) => JSON.parse(content) as unknown)).toEqual([documents.keys, documents.discovery])
    await expect(get({ url: 'http://localhost/?format=tar' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  it('returns either document as published', async () => {
    for (const document of ['discovery', 'keys'] as const) {
      const { get, documents } = await start(document)
      expect(json(await get())).toEqual(documents[document])
      const head = await get({ method: 'HEAD' })
      expect([head.body, head.headers['content-length']]).toEqual([
        undefined,
        String(JSON.stringify(documents[document]).length),
      ])
    }
  })

  it('C10: has nothing at other paths, and rejects other methods', async () => {
    const { get } = await start('keys')
    await expect(get({}, '/x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(get({ method: 'POST' })).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
  })

  it('C12: the discovery document lists each claim once', async () => {
    const { documents } = await start('discovery')
    const claims = documents.discovery['claims_supported'] as string[]
    expect(new Set(claims).size).toBe(claims.length)
  })
})
