import { describe, expect, test } from 'vitest'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import mapping from './mapping.ts'

const ada = subject('uid=ada,o=Tremolo', { sub: ['ada'], mail: ['ada@corp.test'], given_name: ['Ada'], family: ['L'] })

async function map(params: ParamValues, found: typeof ada | undefined = ada) {
  const prepared = mapping.prepare(fakeParams(params), fakeParams({}), noIssues(), fakeParseContext())
  const mechanism = await prepared.create(fakeModuleHost())
  return mechanism.begin({ request: fakeRequest({}), subject: found, root: 'o=Tremolo' })
}

const attributesOf = (outcome: Awaited<ReturnType<typeof map>>) => {
  if (outcome.kind !== 'authenticated') throw new Error(outcome.kind)
  return Object.fromEntries(outcome.subject.attributes)
}

describe('auth.Mapping', () => {
  test('creates the mapped attributes, and no others', async () => {
    const outcome = await map({
      map: ['uid|user|sub', 'cn|composite|${given_name} ${family}', 'kind|static|a|b', 'none|user|absent'],
    })
    expect(attributesOf(outcome)).toEqual({ uid: ['ada'], cn: ['Ada L'], kind: ['a|b'] })
    expect(outcome).toMatchObject({ subject: { uid: 'ada', dn: ada.dn } })
  })

  test('renames attributes, and keeps the others', async () => {
    expect(attributesOf(await map({ map: ['givenName=given_name', 'x=absent'] }))).toEqual({
      sub: ['ada'],
      mail: ['ada@corp.test'],
      family: ['L'],
      givenName: ['Ada'],
    })
  })

  test('an attribute that is mapped from a token’s claims stays a claim', async () => {
    const token = { ...ada, dn: ada.dn.claimed(), attributes: ada.attributes.pick(['sub', 'family']).claimed() }
    token.attributes.set('l', ['Paris'])
    const claimsOf = async (...map_: string[]) => {
      const outcome = await map({ map: map_ }, token)
      if (outcome.kind !== 'authenticated') throw new Error(outcome.kind)
      const { attributes } = outcome.subject
      return attributes.names().filter((name) => attributes.isClaim(name))
    }
    expect(
      await claimsOf('uid|user|sub', 'cn|composite|x ${family}', 'a|user|l', 'b|static|c', 'd|user|TREMOLO_USER_ID'),
    ).toEqual(['uid', 'cn', 'd'])
    expect(await claimsOf('uid=sub', 'city=l')).toEqual(['family', 'uid'])
  })

  test('does nothing without a user', async () => {
    const prepared = mapping.prepare(fakeParams({ map: 'a=b' }), fakeParams({}), noIssues(), fakeParseContext())
    const mechanism = await prepared.create(fakeModuleHost())
    const outcome = await mechanism.begin({ request: fakeRequest({}), subject: undefined, root: 'o=Tremolo' })
    expect(outcome).toMatchObject({ kind: 'rejected' })
  })

  test.each<[ParamValues, number]>([
    [{}, 1],
    [{ map: ['a|user|b', 'c=d'] }, 2],
    [{ map: ['a|usr|b'] }, 1],
    [{ map: ['a|user'] }, 1],
    [{ map: ['a'] }, 1],
    [{ map: ['a=b=c'] }, 1],
  ])('reports what is wrong with %j', (params, count) => {
    const issues = noIssues()
    mapping.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
    expect(issueTexts(issues.list)).toHaveLength(count)
  })
})
