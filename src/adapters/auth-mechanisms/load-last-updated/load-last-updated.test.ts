import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { Subject } from '#identity/subject.ts'
import type { QueryTarget } from '#sdk/target/query-target.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import loadLastUpdated from './load-last-updated.ts'

const documented = {
  lastUpdatedForUser: 'lastUpdated',
  sql: 'SELECT lastUpdated FROM localUsers WHERE sub=?',
  target: 'jitdb',
  uidAttributeName: 'uid',
}

async function begin(caller: Subject | undefined, rows: Awaited<ReturnType<QueryTarget['readRows']>> = []) {
  const issues = noIssues()
  const context = fakeParseContext()
  const prepared = loadLastUpdated.prepare(fakeParams(documented), fakeParams({}), issues, context)
  expect(issueTexts(issues.list)).toEqual([])
  expect(context.references).toMatchObject([{ kind: 'target', name: 'jitdb' }])
  const asked: unknown[] = []
  const readRows: QueryTarget['readRows'] = async (...args) => {
    asked.push(args)
    return rows
  }
  const host = fakeModuleHost({ targets: { jitdb: Object.assign(new MemoryTarget(), { readRows }) } })
  const mechanism = await prepared.create(host)
  const outcome = await mechanism.begin({ request: fakeRequest({}), subject: caller, root: 'o=Tremolo' })
  return { outcome, asked }
}

const caller = subject('sub=ada,ou=oidc,o=Tremolo', { uid: ["x' or '1'='1"], mail: ['ada@corp.test'] })

const timeOf = ({ outcome }: Awaited<ReturnType<typeof begin>>) => {
  if (outcome.kind !== 'authenticated') throw new Error(outcome.kind)
  const { attributes } = outcome.subject
  return [attributes.values('lastUpdated'), attributes.isClaim('lastUpdated'), attributes.first('mail')]
}

test('adds the first column of the row to the caller; the login is a bound value', async () => {
  const done = await begin(caller, [{ lastupdated: '1900000000000', other: 'x' }])
  expect(timeOf(done)).toEqual([['1900000000000'], false, 'ada@corp.test'])
  expect(done.asked).toEqual([['SELECT lastUpdated FROM localUsers WHERE sub=:uid', { uid: "x' or '1'='1" }, 1]])
})

test.each([[[]], [[{ lastupdated: '' }]]])(
  'passes without a time for %j, and drops a time that the caller brought',
  async (rows) => {
    const attributes = Attributes.from({ uid: ['ada'], mail: ['ada@corp.test'], lastUpdated: ['9'] }).claimed()
    expect(timeOf(await begin({ ...caller, attributes }, rows))).toEqual([[], false, 'ada@corp.test'])
  },
)

test.each([[undefined], [subject('sub=x,o=x')], [subject('sub=x,o=x', { uid: ['a', 'b'] })]])(
  'rejects a caller without exactly one login',
  async (who) => {
    const { outcome, asked } = await begin(who)
    expect([outcome, asked]).toEqual([expect.objectContaining({ kind: 'rejected', status: 403 }), []])
  },
)

test('needs a database', async () => {
  const prepared = loadLastUpdated.prepare(fakeParams(documented), fakeParams({}), noIssues(), fakeParseContext())
  const host = fakeModuleHost({ targets: { jitdb: new MemoryTarget() } })
  await expect(prepared.create(host)).rejects.toThrow('"jitdb" is not a database')
})
