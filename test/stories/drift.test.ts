import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { PlanState } from '#features/reconciliation/contract/plan-words.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { type SeededAccount, type SeededTarget, seededGroups, seededTargets } from '#testing/stories/seeded-targets.ts'
import { PeopleApi } from '#testing/targets/people-api.ts'
import { peopleParams } from '#testing/targets/people-params.ts'

const kind = (apiVersion: string, kind: string, name: string, spec: object): string =>
  JSON.stringify({ apiVersion: `${apiVersion}/v1`, kind, metadata: { name }, spec })

/** The people of an API are to have accounts in `chat`. */
function writeConfig(folder: string, people: PeopleApi, { className, params, secrets, names }: SeededTarget): string {
  const config = join(folder, 'config')
  mkdirSync(join(config, 'secrets/chat'), { recursive: true })
  const listed = (values: object) => Object.entries(values).map(([name, value]) => ({ name, value }))
  const secretParams = Object.entries(secrets).map(([name, value]) => {
    writeFileSync(join(config, 'secrets/chat', name), value)
    return { name, secretName: 'chat', secretKey: name }
  })
  const source = { ...peopleParams.whole, url: people.url, pageSize: '5', 'searchUsers.total': '$.total' }
  const { mail, title, active } = names
  const provision = { taskType: 'provision', target: 'chat', sync: true }
  const pair = {
    source: { target: 'people' },
    target: 'chat',
    attributes: [{ name: mail, source: 'mail', sourceType: 'user' }],
  }
  const documents = [
    kind('openunison.tremolo.io', 'Target', 'people', { className: 'targets.Webhook', params: listed(source) }),
    kind('openunison.tremolo.io', 'Target', 'chat', { className, params: listed(params), secretParams }),
    kind('openunison.tremolo.io', 'Workflow', 'join', { tasks: [provision] }),
    kind('openunison.tremolo.io', 'Workflow', 'leave', {
      tasks: [
        { taskType: 'addAttribute', name: active, value: 'false' },
        { ...provision, attributes: [active] },
      ],
    }),
    kind('openunison.tremolo.io', 'Workflow', 'purge', { tasks: [{ taskType: 'delete', target: 'chat' }] }),
    kind('gatehouse.dev', 'Reconciliation', 'guests', {
      ...pair,
      scope: { filter: `(${title}=guest)` },
      groups: ['group1'],
      extra: 'removeMemberships',
      workflow: 'join',
    }),
    kind('gatehouse.dev', 'Reconciliation', 'visitors', {
      ...pair,
      scope: { filter: `(${title}=visitor)` },
      extra: 'delete',
      workflow: 'purge',
    }),
    kind('gatehouse.dev', 'Reconciliation', 'chat', {
      ...pair,
      scope: { filter: `(!(|(${title}=robot)(${title}=guest)(${title}=visitor)))` },
      attributes: [
        { name: mail, source: 'mail', sourceType: 'user' },
        { name: title, source: 'phone', sourceType: 'user' },
        { name: active, source: 'true', sourceType: 'static' },
      ],
      groups: ['group1'],
      correlation: ['login', { source: 'mail', target: mail }],
      deactivated: `(${active}=false)`,
      missing: 'create',
      different: 'change',
      extra: 'deactivate',
      limits: { percent: 40, accounts: 3 },
      workflow: 'join',
      workflows: { deactivate: 'leave' },
    }),
  ]
  writeFileSync(join(config, 'gateway.yaml'), documents.join('\n---\n'))
  return config
}

const account = (login: string, more: Partial<SeededAccount> = {}): SeededAccount => ({
  mail: `${login}@example.com`,
  title: 'Staff',
  active: true,
  groups: [],
  ...more,
})

/** A row as `gatehouse reconcile rows --output json` prints it. */
interface Row {
  readonly kind: string
  readonly action: string
  readonly state: string
  readonly reason: string
  readonly source?: { readonly login: string }
  readonly target?: { readonly login: string }
}

const needs: Readonly<Record<string, 'slapd' | 'postgresUrl'>> = {
  OpenLDAP: 'slapd',
  'tables in PostgreSQL': 'postgresUrl',
}
const possible = Object.entries(seededTargets).filter(([name]) => {
  const part = needs[name]
  return part === undefined || inject(part) !== ''
})

describe.each(possible)('drift in %s', (name, openTarget) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-drift-'))
  const dataFolder = join(folder, 'data')
  let people: PeopleApi
  let target: SeededTarget
  let gateway: GatewayProcess
  const start = async (): Promise<void> => {
    const config = writeConfig(folder, people, target)
    gateway = await startGatewayProcess({ config, dataFolder, args: ['--strict'] })
  }
  beforeAll(async () => {
    people = await PeopleApi.start()
    target = await openTarget(folder)
    await start()
  })
  afterAll(async () => {
    await gateway?.stop()
    await target?.close()
    await people?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const employ = (login: string, { mail, title, groups }: SeededAccount): void => {
    people.people.set(login, { login, phone: title, mails: [{ kind: 'work', address: mail }] })
    for (const group of groups) people.units.get(group)?.add(login)
  }
  const reconcile = (...args: string[]) => runCommand(['reconcile', ...args, '--data', dataFolder])
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await reconcile(...args, '--output', 'json')
    return { code, stderr, body: stdout === '' ? undefined : JSON.parse(stdout) }
  }
  const plan = async (reconciliation = 'chat') => (await json('plan', reconciliation)).body
  /** `kind person>account action: why`, sorted. */
  const rows = async (id: string): Promise<string[]> =>
    (await json('rows', id)).body
      .map(({ kind, source, target, action, reason }: Row) => {
        return `${kind} ${source?.login ?? ''}>${target?.login ?? ''} ${action}: ${reason}`
      })
      .sort()
  const becomes = async (id: string, ...states: readonly PlanState[]) => {
    let found: { state: PlanState } | undefined
    await until(async () => {
      found = (await json('show', id)).body
      return found !== undefined && states.includes(found.state)
    }, 120_000).catch((cause: unknown) => {
      throw new Error(`the plan is ${JSON.stringify(found)}`, { cause })
    })
    return found
  }
  const apply = async (id: string) => {
    const { code, body, stderr } = await json('apply', id, '--reason', 'reviewed')
    expect(code, `${stderr}${JSON.stringify(body)}`).toBe(0)
    return body
  }

  test('of every kind is shown with the reason and repaired, and a second plan is empty', async () => {
    const [staff, both] = [{ groups: ['group1'] }, { groups: ['group1', 'group2'] }]
    employ('ann', account('ann', staff))
    employ('bea', account('bea', staff))
    employ('carl', account('carl', { ...staff, title: 'Chef' }))
    for (const login of ['dora', 'edna', 'fay', 'gus', 'hal']) employ(login, account(login))
    await target.add('ann', account('ann', both))
    await target.add('carl', account('carl', { groups: ['group2'] }))
    await target.add('dora', account('dora', both))
    await target.add('edna', account('edna', { active: false }))
    await target.add('fay1', account('fay'))
    await target.add('fay2', account('fay'))
    await target.add('gustav', account('gus', staff))
    await target.add('hal', account('hal', { mail: 'other@example.com', title: 'robot' }))
    await target.add('robot', account('robot', { ...both, title: 'robot' }))
    await target.add('yan', account('yan', { active: false }))
    await target.add('zoe', account('zoe', staff))
    const untouched = async () => {
      const { hal, robot, yan } = await target.stored()
      return { hal, robot, yan }
    }
    const before = await untouched()

    const first = await plan()
    expect(first).toMatchObject({ state: 'planned', counts: { source: 7 } })
    expect(await rows(first.id)).toEqual([
      `ambiguous fay> report: By ${target.names.mail}, 2 accounts may belong to this person. Decide with a link.`,
      expect.stringMatching(/^different carl>carl change: \S+ differs, and 1 membership differs\.$/),
      'different dora>dora change: 1 membership differs. The change takes all compared memberships.',
      expect.stringMatching(/^different edna>edna change: The account is deactivated, and \S+ differs\.$/),
      'different gus>gustav change: The login is "gustav" instead of "gus", and 1 membership differs. The change takes all compared memberships.',
      'extra >zoe deactivate: No person of the source has this account.',
      'missing bea> create: No account belongs to this person.',
    ])
    expect(await target.read()).toMatchObject({ gustav: {}, zoe: { active: true } })
    expect(await apply(first.id)).toMatchObject({ state: 'applied', rowsByState: { done: 6, failed: 0, skipped: 0 } })
    const repaired = {
      ann: account('ann', both),
      bea: account('bea', staff),
      carl: account('carl', { ...both, title: 'Chef' }),
      dora: account('dora', { groups: ['group2'] }),
      edna: account('edna'),
      gus: account('gus'),
      hal: account('hal', { mail: 'other@example.com', title: 'robot' }),
      robot: account('robot', { ...both, title: 'robot' }),
      yan: account('yan', { active: false }),
      zoe: account('zoe', { ...staff, active: false }),
    }
    expect(await target.read()).toEqual({ ...repaired, fay1: account('fay'), fay2: account('fay') })

    expect((await reconcile('link', 'chat', 'fay', 'fay1', '--reason', 'asked her')).code).toBe(0)
    const second = await plan()
    expect(await rows(second.id)).toEqual([
      'different fay>fay1 change: The login is "fay1" instead of "fay".',
      'extra >fay2 deactivate: No person of the source has this account.',
    ])
    await apply(second.id)
    expect(await target.read()).toEqual({
      ...repaired,
      fay: account('fay'),
      fay2: account('fay', { active: false }),
    })
    const last = await plan()
    expect(last).toMatchObject({ state: 'planned', counts: { source: 7 } })
    expect(await rows(last.id)).toEqual([])
    expect(await untouched()).toEqual(before)
  })

  test('stays as it is when the source breaks off, lies about its size or has lost its people', async () => {
    const before = await target.stored()
    const isList = (url = ''): boolean => url.startsWith('/v1/people?')
    /** Lists end after two people. */
    const listTwo = (total: number): void => {
      people.after = ({ url }, response) => {
        if (isList(url)) response.end(JSON.stringify({ people: [...people.people.values()].slice(0, 2), total }))
        return isList(url)
      }
    }
    people.before = ({ url }, response) => {
      const isSecondPage = isList(url) && url?.includes('after=5') === true
      if (isSecondPage) response.destroy()
      return isSecondPage
    }
    const cut = await json('plan', 'chat')
    expect(cut).toMatchObject({ code: 1, body: { state: 'paused', counts: { agree: 0 } } })
    people.before = () => false
    listTwo(8)
    await reconcile('resume', cut.body.id)
    expect(await becomes(cut.body.id, 'failed', 'planned', 'stopped')).toMatchObject({
      state: 'failed',
      problem: expect.stringContaining('ends after 2 of 8 entries'),
    })
    listTwo(2)
    const stopped = await json('plan', 'chat')
    people.after = () => false
    expect(stopped).toMatchObject({ code: 1, body: { state: 'stopped' } })
    expect(stopped.body.problem).toMatch(
      /^The plan would deactivate 5 and by changes .+ from 2 of 10 accounts in scope\. The limit is 3 /,
    )
    expect(await reconcile('apply', stopped.body.id)).toMatchObject({ code: 1 })
    expect(await target.stored()).toEqual(before)
  })

  test('of accounts that no one has is repaired by deleting them, or their memberships', async () => {
    const before = await target.read()
    await target.add('gil', account('gil', { title: 'guest', groups: [...seededGroups] }))
    await target.add('vic', account('vic', { title: 'visitor', groups: ['group1'] }))
    const guests = await plan('guests')
    expect(await rows(guests.id)).toEqual(['extra >gil removeMemberships: No person of the source has this account.'])
    const visitors = await plan('visitors')
    expect(await rows(visitors.id)).toEqual(['extra >vic delete: No person of the source has this account.'])
    await apply(guests.id)
    await apply(visitors.id)
    expect(await target.read()).toEqual({ ...before, gil: account('gil', { title: 'guest', groups: ['group2'] }) })
    for (const name of ['guests', 'visitors', 'chat']) expect(await rows((await plan(name)).id)).toEqual([])
  })

  test('is not what a system seems to lack while it is away', async () => {
    target.line.cut()
    const away = await json('plan', 'chat')
    expect(away).toMatchObject({ code: 1, body: { state: 'paused', rowsByState: { open: 0 } } })
    target.line.mend()
    await reconcile('resume', away.body.id)
    const planned = await becomes(away.body.id, 'planned', 'stopped', 'failed')
    expect(planned).toMatchObject({ state: 'planned', counts: { source: 7 }, rowsByState: { open: 0, reported: 0 } })
  })

  /** People whose accounts differ, and people without one. */
  async function hire(prefix: string): Promise<{ readonly changed: string[]; readonly created: string[] }> {
    const named = (word: string) => Array.from({ length: 20 }, (_, i) => `${prefix}-${word}-${i}`)
    const [changed, created] = [named('old'), named('new')]
    for (const login of changed) await target.add(login, account(login, { title: 'Intern' }))
    for (const login of changed) employ(login, account(login))
    for (const login of created) employ(login, account(login, { groups: ['group1'] }))
    return { changed, created }
  }
  const expectAllOnce = async ({ changed, created }: Awaited<ReturnType<typeof hire>>): Promise<void> => {
    const accounts = await target.read()
    for (const login of changed) expect(accounts[login]).toEqual(account(login))
    for (const login of created) expect(accounts[login]).toEqual(account(login, { groups: ['group1'] }))
    const changes = await target.changes()
    expect(changed.filter((login) => changes[login] !== 1)).toEqual([])
    const last = await plan()
    expect(await rows(last.id)).toEqual([])
  }

  test('is repaired to the end after the system went down in the middle, each account once', async () => {
    const hired = await hire('down')
    const { id } = await plan()
    let changes = 0
    target.line.passes = (sent) => !(target.isChange(sent) && ++changes === 5)
    const interrupted = await json('apply', id)
    expect(interrupted).toMatchObject({ code: 1, body: { state: 'paused', problem: expect.any(String) } })
    target.line.mend()
    expect((await reconcile('resume', id)).code).toBe(0)
    expect(await becomes(id, 'applied', 'failed', 'stopped')).toMatchObject({
      state: 'applied',
      rowsByState: { done: 40, failed: 0, skipped: 0, waiting: 0 },
    })
    await expectAllOnce(hired)
  })

  // One kind of system is enough: each one loses answers in the test before, and a kill adds only the gateway's part.
  if (name === 'an API') {
    test('is repaired to the end after the gateway was killed, each account once', async () => {
      const hired = await hire('killed')
      const { id } = await plan()
      let changes = 0
      target.line.passes = (sent) => {
        if (target.isChange(sent) && ++changes === 5) gateway.process.kill('SIGKILL')
        return true
      }
      const ended = once(gateway.process, 'exit')
      const applied = apply(id)
      await ended
      await start()
      expect(await applied).toMatchObject({ state: 'applied', rowsByState: { done: 40, skipped: 0, waiting: 0 } })
      await expectAllOnce(hired)
    })
  }
})
