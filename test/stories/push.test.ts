import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type CommandResult, runCommand } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { type ApplicationName, ScimApplication } from '#testing/scim/scim-application.ts'
import { ScimClient } from '#testing/scim/scim-client.ts'
import { blocksOf } from '#testing/stories/documented-commands.ts'

const patience = 90_000

const person = (login: string, more = {}) => ({
  userName: login,
  externalId: `external-${login}`,
  displayName: login.toUpperCase(),
  name: { givenName: login, familyName: 'Example' },
  emails: [{ value: `${login}@example.com`, type: 'work', primary: true }],
  active: true,
  ...more,
})

interface Push {
  readonly application: ScimApplication
  readonly people: ScimClient
  readonly gateway: GatewayProcess
  readonly config: string
  readonly dataFolder: string
  restart(): Promise<Push>
  create(login: string, more?: object): Promise<string>
  createGroup(name: string, ...members: string[]): Promise<string>
}

// A story has few people.
const exampleChat = readFileSync('examples/push/chat.yaml', 'utf8').replace('percent: 10', 'percent: 100')

/** examples/push with a scripted application. */
async function startPush(
  name: ApplicationName,
  application: ScimApplication,
  folder: string,
  chat = exampleChat,
): Promise<Push> {
  const config = join(folder, 'config')
  cpSync('examples/push', config, { recursive: true })
  writeFileSync(join(config, 'chat.yaml'), chat)
  writeFileSync(join(config, 'secrets/chat/token'), application.token)
  const dataFolder = join(folder, 'data')
  const gateway = await startGatewayProcess({
    config,
    dataFolder,
    environment: { CHAT_URL: application.url.href, CHAT_PROFILE: name },
  })
  onTestFinished(async () => void (await gateway.stop()))
  const people = new ScimClient(`${gateway.url}/scim/people`, await gateway.token('--subject', 'idp'))
  const made = ({ status, body }: Awaited<ReturnType<ScimClient['post']>>): string => {
    expect(status, JSON.stringify(body)).toBe(201)
    return String(body.id)
  }
  return {
    application,
    people,
    gateway,
    config,
    dataFolder,
    restart: () => startPush(name, application, folder, chat),
    create: async (login, more) => made(await people.post('/Users', person(login, more))),
    createGroup: async (displayName, ...members) =>
      made(await people.post('/Groups', { displayName, members: members.map((value) => ({ value })) })),
  }
}

const changeInChat = `---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: change-in-chat }
spec:
  label: Change an account of the chat
  tasks: [{ taskType: provision, sync: true, target: chat, attributes: [active] }]
`

/** As docs/guides/push.md says: no groups, the name as one attribute, and changes of what GitLab changes. */
const forGitLab = (chat: string): string =>
  [
    [/^ {4}- name: missingGroups\n.*\n/m, ''],
    [/^ {2}groups: all\n/m, ''],
    [/^ {4}- \{ name: name\.givenName.*\n/m, ''],
    [/^ {4}- \{ name: name\.familyName.*\n/m, ''],
    ['name: displayName, source', 'name: name.formatted, source'],
    ['  workflows:\n', '  workflows:\n    change: change-in-chat\n'],
    [/$/, changeInChat],
    [/^ {4}# The second rule[\s\S]*? {4}- attribute: externalId\n/m, '    - login\n'],
  ].reduce((text, [from = '', to = '']) => {
    const changed = text.replace(from, String(to))
    expect(changed, String(from)).not.toBe(text)
    return changed
  }, chat)

async function open(name: ApplicationName, chatOf = (_: URL): string => exampleChat): Promise<Push> {
  const application = await new ScimApplication(name).listen()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-push-'))
  onTestFinished(() => {
    application.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return await startPush(name, application, folder, chatOf(application.url))
}

const active = ({ application }: Push) =>
  Object.fromEntries([...application.users()].map(([login, user]) => [login, user['active'] !== false]))
const groups = ({ application }: Push) => Object.fromEntries(application.groups())
const becomes = async <T>(read: () => T, wanted: T): Promise<void> => {
  await until(async () => isDeepStrictEqual(read(), wanted), patience).catch(() => {})
  expect(read()).toEqual(wanted)
}

describe.each(['slack', 'github', 'atlassian'] as const)('to %s', (name) => {
  test('everyone is pushed with their groups, and then each change alone', async () => {
    const first = await open(name)
    const ids = await Promise.all(['ann', 'bea', 'cyd'].map((login) => first.create(login)))
    const [ann = '', bea = ''] = ids
    const staff = await first.createGroup('staff', ann, bea)
    await becomes(() => active(first), { ann: true, bea: true, cyd: true })
    await becomes(() => groups(first), { staff: ['ann', 'bea'] })

    const { people } = first
    await people.patch(`/Users/${ann}`, [{ op: 'replace', path: 'displayName', value: 'Ann Lee' }])
    await becomes(() => first.application.users().get('ann')?.['displayName'], 'Ann Lee')
    await people.patch(`/Groups/${staff}`, [
      { op: 'remove', path: `members[value eq "${bea}"]` },
      { op: 'add', path: 'members', value: [{ value: ids[2] }] },
    ])
    await becomes(() => groups(first), { staff: ['ann', 'cyd'] })
    await people.patch(`/Users/${bea}`, [{ op: 'replace', path: 'userName', value: 'beatrice' }])
    await becomes(() => Object.keys(active(first)).sort(), ['ann', 'beatrice', 'cyd'])
    await people.patch(`/Users/${ann}`, [{ op: 'replace', path: 'active', value: false }])
    await becomes(() => active(first)['ann'], false)
    await people.patch(`/Users/${ann}`, [{ op: 'replace', path: 'active', value: true }])
    await becomes(() => active(first)['ann'], true)
    await people.delete(`/Users/${ids[2]}`)
    await becomes(() => active(first)['cyd'], false)
    expect(first.application.received.filter(({ status, path }) => status >= 400 && path.startsWith('/Users'))).toEqual(
      [],
    )
  }, 300_000)
})

test('the guide pushes everyone by hand first, and then each change automatically', async () => {
  const [target = '', reconciliation = '', workflows = '', automatic = ''] = blocksOf('docs/guides/push.md', 'yaml')
  const chatOf = (url: URL, spec = reconciliation): string =>
    [target.replace('https://chat.example.com/scim/v2', url.href), spec, workflows].join('---\n')
  const push = await open('atlassian', chatOf)
  const { application, dataFolder } = push
  const reconcile = (...args: string[]) => runCommand(['reconcile', ...args, '--data', dataFolder])
  const planOf = ({ stdout }: CommandResult): string => /^plan +(\S+)$/m.exec(stdout)?.[1] ?? ''
  const hasAccount = async (login: string, more = {}): Promise<void> => {
    const body = JSON.stringify({ ...person(login), displayName: 'By hand', ...more })
    const headers = { authorization: `Bearer ${application.token}`, 'content-type': 'application/scim+json' }
    expect((await fetch(`${application.url}/Users`, { method: 'POST', headers, body })).status).toBe(201)
  }
  await hasAccount('bea')
  await hasAccount('eve')
  await hasAccount('robert', { externalId: 'unknown' })
  const ids = await Promise.all(['ann', 'bea', 'bob'].map((login) => push.create(login)))
  await push.create('cyd', { active: false })
  await push.createGroup('staff', ids[0] ?? '', ids[2] ?? '')

  const first = await reconcile('plan', 'chat')
  expect(first.code).toBe(1)
  expect(first.stdout).toMatch(/^state +stopped: The plan would deactivate 2 of 3 accounts in scope\./m)
  const rows = (await reconcile('rows', planOf(first))).stdout
  for (const row of [
    'missing: ann',
    'missing: bob',
    'different: bea → bea (by login)',
    'extra: eve',
    'extra: robert',
  ]) {
    expect(rows).toContain(row)
  }
  expect(await reconcile('link', 'chat', 'bob', 'robert', '--reason', 'asked him')).toMatchObject({ code: 0 })
  expect(active(push)).toEqual({ bea: true, eve: true, robert: true })
  const second = await reconcile('plan', 'chat')
  expect(second).toMatchObject({ code: 0, stdout: expect.stringContaining('reconcile apply') })
  const applied = await reconcile('apply', planOf(second), '--reason', 'reviewed with the team')
  expect(applied, applied.stdout).toMatchObject({ code: 0 })
  expect(active(push)).toEqual({ ann: true, bea: true, bob: true, eve: false })
  expect(groups(push)).toEqual({ staff: ['ann', 'bob'] })
  expect(application.users().get('bea')?.['displayName']).toBe('BEA')
  expect((await reconcile('plan', 'chat')).stdout).toMatch(/^found +4 agree$/m)

  const fields = automatic.replaceAll(/^(?=\w)/gm, '  ')
  writeFileSync(
    join(push.config, 'chat.yaml'),
    chatOf(application.url, reconciliation.replace('  apply: manual\n', fields)),
  )
  await push.create('dan')
  await becomes(() => active(push), { ann: true, bea: true, bob: true, dan: true, eve: false })
})

test('to gitlab, people are pushed without groups, and what it accepts later', async () => {
  const push = await open('gitlab', () => forGitLab(exampleChat))
  const { application, people } = push
  const [ann = '', bea = ''] = await Promise.all(['ann', 'bea'].map((login) => push.create(login)))
  await push.createGroup('staff', ann, bea)
  await becomes(() => active(push), { ann: true, bea: true })
  expect(application.users().get('ann')).toMatchObject({
    id: 'external-ann',
    externalId: 'external-ann',
    name: { formatted: 'ANN' },
    emails: [{ value: 'ann@example.com', type: 'work', primary: true }],
  })
  await people.patch(`/Users/${ann}`, [{ op: 'replace', path: 'active', value: false }])
  await becomes(() => active(push)['ann'], false)
  await people.patch(`/Users/${ann}`, [{ op: 'replace', path: 'active', value: true }])
  await becomes(() => active(push)['ann'], true)
  await people.patch(`/Users/${ann}`, [{ op: 'replace', path: 'displayName', value: 'Ann Lee' }])
  await people.delete(`/Users/${bea}`)
  await becomes(() => active(push)['bea'], false)
  await push.create('cyd')
  await becomes(() => active(push), { ann: true, bea: false, cyd: true })
  // GitLab accepts a name with a new user only. The difference stays, and keeps no one from leaving.
  const reconcile = (...args: string[]) => runCommand(['reconcile', ...args, '--data', push.dataFolder])
  const plan = /^plan +(\S+)$/m.exec((await reconcile('plan', 'chat')).stdout)?.[1] ?? ''
  expect((await reconcile('rows', plan)).stdout).toContain('name.formatted: "ANN" → "Ann Lee"')
  await reconcile('apply', plan, '--reason', 'try it')
  const rows = (await reconcile('rows', plan)).stdout
  expect(rows).toContain('change, failed')
  expect(rows).toContain('The run completed, but the account still differs')
  await people.patch(`/Users/${ann}`, [{ op: 'replace', path: 'active', value: false }])
  await becomes(() => active(push)['ann'], false)
  const { received } = application
  expect(received.filter(({ status }) => status >= 400 && status !== 404)).toEqual([])
  expect(received.filter(({ path }) => path.startsWith('/Groups'))).toEqual([])
}, 300_000)

describe('an application that fails', () => {
  const pushed = async () => {
    const push = await open('github')
    const ann = await push.create('ann')
    await becomes(() => active(push), { ann: true })
    return { ...push, ann }
  }

  test('with 429 gets no storm of calls, and what it refused is done later', async () => {
    const push = await pushed()
    const { application } = push
    let until = 0
    application.trouble = ({ method }) => {
      if (until === 0 && method === 'POST') until = performance.now() + 3000
      const seconds = Math.ceil((until - performance.now()) / 1000)
      return seconds > 0 ? { status: 429, headers: { 'retry-after': String(seconds) } } : undefined
    }
    const logins = Array.from({ length: 12 }, (_, i) => `user${String(i).padStart(2, '0')}`)
    await Promise.all(logins.map((login) => push.create(login)))
    await becomes(() => Object.keys(active(push)).sort(), ['ann', ...logins])
    // Those that were under way when the first was refused; without a pause each of them is refused at least once.
    expect(application.received.filter(({ status }) => status === 429).length).toBeLessThan(logins.length)
    expect(application.received.filter(({ method, status }) => method === 'POST' && status === 201)).toHaveLength(13)
  }, 300_000)

  test('by silence has every change once it is back', async () => {
    const push = await pushed()
    const { application, people, ann } = push
    application.trouble = () => 'silence'
    const before = application.received.length
    await people.patch(`/Users/${ann}`, [{ op: 'replace', path: 'displayName', value: 'Ann Lee' }])
    await push.create('bea')
    await becomes(() => application.received.length > before, true)
    expect(active(push)).toEqual({ ann: true })
    application.trouble = () => undefined
    await becomes(() => active(push), { ann: true, bea: true })
    await becomes(() => application.users().get('ann')?.['displayName'], 'Ann Lee')
  }, 300_000)

  test('to answer before the gateway is killed has the person once', async () => {
    const push = await pushed()
    const { application, gateway } = push
    const killed = Promise.withResolvers<void>()
    application.losesAnswer = ({ method }) => {
      if (method === 'POST') killed.resolve()
      return method === 'POST'
    }
    await push.create('bea')
    await killed.promise
    const ended = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await ended
    application.losesAnswer = () => false
    const next = await push.restart()
    await next.people.patch(`/Users/${push.ann}`, [{ op: 'replace', path: 'displayName', value: 'Ann Lee' }])
    await becomes(() => application.users().get('ann')?.['displayName'], 'Ann Lee')
    expect(active(push)).toEqual({ ann: true, bea: true })
    expect(application.received.filter(({ method, status }) => method === 'POST' && status < 300)).toHaveLength(2)
  }, 300_000)
})
