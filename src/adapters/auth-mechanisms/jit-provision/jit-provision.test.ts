import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import jitProvision from './jit-provision.ts'

const caller = subject('sub=ada,ou=oidc,o=Tremolo', { uid: ['ada'], mail: ['ada@corp.test'], access_token: ['secret'] })
const base = { nameAttr: 'uid', workflowName: 'jit' }
const now = Date.UTC(2030, 0, 1)

interface Options {
  readonly params?: ParamValues
  readonly updated?: string
  readonly failure?: GatewayError
  readonly found?: typeof caller | undefined
  readonly known?: boolean
  /** The attribute of the entry before and after the workflow runs. */
  readonly active?: readonly [before: string, after: string]
  readonly reloadRoot?: string
}

async function run({
  params = base,
  updated,
  failure,
  found = caller,
  known = true,
  active = ['true', 'true'],
  reloadRoot,
}: Options) {
  const calls: WorkflowCall[] = []
  const attributes = Attributes.from({
    uid: ['ada'],
    cn: ['Ada'],
    userPassword: ['x'],
    active: [active[0]],
    ...(updated === undefined ? {} : { updated: [updated] }),
  })
  const entry = { dn: Dn.parse('uid=ada,ou=people,o=Tremolo'), attributes }
  const host = {
    ...fakeModuleHost({ entries: known ? [entry] : [], now: () => now }),
    workflows: {
      run: async (call: WorkflowCall) => {
        calls.push(call)
        if (failure !== undefined) throw failure
        attributes.set('active', [active[1]])
        return { id: 'r', status: 'completed', changes: 1 } as never
      },
    },
    ...(reloadRoot === undefined ? {} : { reloadRoot: () => Dn.parse(reloadRoot) }),
  }
  const prepared = jitProvision.prepare(fakeParams(params), fakeParams({}), noIssues(), fakeParseContext())
  const mechanism = await prepared.create(host)
  const outcome = await mechanism.begin({ request: fakeRequest({}), subject: found, root: 'o=Tremolo' })
  return { outcome, calls, bases: host.searches.map(({ base }) => base.toString()) }
}

describe('auth.JitProvision', () => {
  test('runs the workflow for the caller and no one else, and reads the user again', async () => {
    const { outcome, calls } = await run({})
    expect(calls).toMatchObject([
      { head: { workflow: 'jit', requester: 'ada' }, user: { userID: 'ada' }, params: {}, keepGroups: true },
    ])
    expect(calls[0]?.asynchronous).toBeUndefined()
    expect(calls[0]?.user.attributes.has('access_token')).toBe(false)
    if (outcome.kind !== 'authenticated') throw new Error(outcome.kind)
    expect(outcome.subject.dn.toString()).toBe('uid=ada,ou=people,o=Tremolo')
    expect(outcome.subject.attributes.first('cn')).toBe('Ada')
    expect(outcome.subject.attributes.has('userPassword')).toBe(false)
    // The entry may have several logins, of which this is not the first.
    expect(outcome.subject.link).toMatchObject({ filter: { attribute: 'uid', value: 'ada' }, uidAttr: undefined })
  })

  test('finds the user where the workflow reads the user again, unless a base is configured', async () => {
    expect((await run({})).bases).toEqual(['o=Tremolo', 'o=Tremolo'])
    expect((await run({ reloadRoot: 'ou=shadow,o=Tremolo' })).bases).toEqual(Array(2).fill('ou=shadow,o=Tremolo'))
    const params = { ...base, reloadBaseDN: 'ou=people,o=Tremolo' }
    expect((await run({ params, reloadRoot: 'ou=shadow,o=Tremolo' })).bases).toEqual(
      Array(2).fill('ou=people,o=Tremolo'),
    )
  })

  test('an unverified mail address is not accepted as a login', async () => {
    const params = { ...base, nameAttr: 'mail' }
    const { outcome, calls } = await run({ params })
    expect(outcome).toMatchObject({ kind: 'rejected', reason: expect.stringContaining('"mail" is not verified') })
    expect(calls).toEqual([])
    const verified = { ...caller, attributes: Attributes.from([...caller.attributes, ['email_verified', ['true']]]) }
    expect((await run({ params, found: verified })).calls).toHaveLength(1)
    expect((await run({ params: { ...params, acceptUnverifiedMail: 'true' } })).calls).toHaveLength(1)
  })

  test('continues with the claims if the directory does not show the user', async () => {
    expect((await run({ known: false })).outcome).toMatchObject({ kind: 'authenticated', subject: { dn: caller.dn } })
  })

  test('rejects a user whom the workflow did not create', async () => {
    const { outcome } = await run({ failure: new GatewayError('WORKFLOW_FAILED', 'no') })
    expect(outcome).toMatchObject({ kind: 'rejected', status: 403 })
  })

  test('runs nothing for a deactivated user, and rejects a user whom the workflow deactivated', async () => {
    const off = { kind: 'rejected', status: 403, reason: 'the person is switched off in the directory' }
    const before = await run({ active: ['false', 'true'] })
    expect([before.outcome, before.calls]).toEqual([off, []])
    const after = await run({ active: ['true', 'false'] })
    expect([after.outcome, after.calls.length]).toEqual([off, 1])
  })

  test('reports a system that does not answer', async () => {
    await expect(run({ failure: new GatewayError('TARGET_UNREACHABLE', 'no') })).rejects.toMatchObject({
      code: 'TARGET_UNREACHABLE',
    })
  })

  test.each([[undefined], [subject('sub=x,o=Tremolo', {})], [subject('sub=x,o=Tremolo', { uid: ['a', 'b'] })]])(
    'rejects a caller without exactly one login',
    async (found) => {
      const prepared = jitProvision.prepare(fakeParams(base), fakeParams({}), noIssues(), fakeParseContext())
      const mechanism = await prepared.create(fakeModuleHost())
      const outcome = await mechanism.begin({ request: fakeRequest({}), subject: found, root: 'o=Tremolo' })
      expect(outcome).toMatchObject({ kind: 'rejected' })
    },
  )

  test.each([
    [String(now - 59_000), 0],
    [String(now - 60_000), 1],
    [String(now + 1000), 1],
    ['soon', 1],
    [undefined, 1],
  ])('does not run within the grace period: updated at %s, run %i times', async (updated, count) => {
    const params = { ...base, gracePeriod: '60', lastUpdatedAttributeName: 'updated' }
    const { calls } = await run({ params, ...(updated === undefined ? {} : { updated }) })
    expect(calls).toHaveLength(count)
  })

  test.each<[string, Partial<Record<'set' | 'setClaim', string>>, number]>([
    ['skips the run for a time that another mechanism read', { set: String(now - 59_000) }, 0],
    ['runs for one that is too old', { set: String(now - 60_000) }, 1],
    ['runs for one that the caller brought', { setClaim: String(now - 59_000) }, 1],
  ])('%s', async (_, { set, setClaim }, count) => {
    const attributes = caller.attributes.clone()
    if (set !== undefined) attributes.set('updated', [set])
    if (setClaim !== undefined) attributes.setClaim('updated', [setClaim])
    const params = { ...base, gracePeriod: '60', lastUpdatedAttributeName: 'updated' }
    const { calls } = await run({ params, found: { ...caller, attributes }, known: false })
    expect(calls).toHaveLength(count)
  })

  test('reports invalid parameters', () => {
    const read = (params: ParamValues) => {
      const issues = noIssues()
      jitProvision.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
      return issueTexts(issues.list)
    }
    expect(read({})).toHaveLength(2)
    expect(read({ ...base, gracePeriod: '60' })).toHaveLength(1)
    expect(read({ ...base, reloadBaseDN: 'nonsense' })).toHaveLength(1)
    expect(read({ ...base, reloadBaseDN: 'ou=people,o=Tremolo' })).toEqual([])
  })
})
