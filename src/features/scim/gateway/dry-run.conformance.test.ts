import { expect, test } from 'vitest'
import type { z } from 'zod'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { both, dry, enterprise, openDryRuns, patchOf, type State } from '#testing/scim/dry-run-fixture.ts'
import type { dryRunMessage } from './dry-run.ts'
import scimGateway from './scim-gateway.ts'

type Message = z.infer<typeof dryRunMessage>
type Step = Message['runs'][number]['steps'][number]

const open = (url: string) => openDryRuns(scimGateway, url)

/** What a target has after the steps of a preview. */
function applied(before: Record<string, State>, steps: readonly Step[]): Record<string, State> {
  const after = structuredClone(before)
  for (const step of steps) {
    if (step.kind !== 'user' && step.kind !== 'group') continue
    const { kind, action, name, newName = name, attributes, joins, leaves } = step
    const target = after[step.target]
    if (target === undefined) throw new Error(`no target ${step.target}`)
    const { user, group } = target
    const values = (present: Readonly<Record<string, readonly string[]>> = {}) => {
      // Groups in groups are not attributes of them.
      const shown = attributes.filter((one) => !one.secret && one.name !== 'members')
      for (const one of shown) expect(present[one.name] ?? [], `${one.name} before`).toEqual(one.before)
      const changed = { ...present, ...Object.fromEntries(shown.map((one) => [one.name, one.after])) }
      return Object.fromEntries(Object.entries(changed).filter(([, list]) => list.length > 0))
    }
    if (kind === 'user') {
      const present = user[name]
      const groups = new Set(present?.groups).difference(new Set(leaves)).union(new Set(joins))
      delete user[name]
      if (action !== 'delete') user[newName] = { attributes: values(present?.attributes), groups: [...groups].sort() }
      continue
    }
    const present = group[name]
    delete group[name]
    if (action !== 'delete') group[newName] = values(present)
    // The second system keeps the names of groups in its users.
    for (const one of step.target === 'people' ? Object.values(user) : []) {
      const rest = one.groups.filter((joined) => joined !== name)
      const renamed = action !== 'delete' && rest.length < one.groups.length ? [newName] : []
      one.groups = [...rest, ...renamed].sort()
    }
  }
  return after
}

onEachDatabase('dry runs', (freshUrl) => {
  test('change nothing, and show what the same request then does', async () => {
    const { send, dump, state } = await open(await freshUrl())
    const ids = new Map<string, string>()
    const at = (name: string): string => `/${name === name.toUpperCase() ? 'Groups' : 'Users'}/${ids.get(name) ?? ''}`
    const member = (...names: string[]) => names.map((name) => ({ value: ids.get(name) ?? '' }))
    /** A dry run by header or query, the same request, and the id of what it created. */
    const change = async (method: string, path: string, body?: JsonObject, created?: string) => {
      const [before, rows] = [await state(), await dump()]
      const byQuery = ids.size % 2 === 0
      const shown = await send(method, byQuery ? `${path}?dryRun=true` : path, body, byQuery ? {} : dry)
      const title = `${method} ${path} ${JSON.stringify(body)} ${JSON.stringify(shown.body)}`
      expect(shown.status, title).toBe(200)
      expect(shown.body, title).toMatchObject({ complete: true, waits: false })
      expect(await dump(), title).toEqual(rows)
      const { runs } = shown.body as unknown as Message
      const done = await send(method, path, body)
      expect(done.status, JSON.stringify(done.body)).toBeLessThan(300)
      const steps = runs.flatMap((run) => run.steps)
      expect(applied(before, steps), title).toEqual(await state())
      if (created !== undefined) ids.set(created, String(done.body['id']))
      return steps
    }
    const ann = { userName: 'ann', title: 'Dr', active: true, emails: [{ value: 'ann@x.org', type: 'work' }] }
    await change('POST', '/Users', ann, 'ann')
    await change('POST', '/Users', { userName: 'bob', password: 'correct horse battery' }, 'bob')
    await change(
      'POST',
      '/Users',
      { userName: 'eve', [enterprise]: { manager: { value: ids.get('ann') ?? '' } } },
      'eve',
    )
    await change('PATCH', at('ann'), patchOf({ op: 'replace', path: 'title', value: 'Prof' }))
    await change(
      'PATCH',
      at('ann'),
      patchOf({ op: 'remove', path: 'title' }, { op: 'add', path: 'nickName', value: 'A' }),
    )
    await change('PATCH', at('ann'), patchOf({ op: 'replace', path: 'active', value: 'False' }))
    await change('PUT', at('ann'), { userName: 'anna', title: 'Dame', active: true })
    await change('PATCH', at('bob'), patchOf({ op: 'replace', path: 'password', value: 'staple horse battery' }))
    await change('POST', '/Groups', { displayName: 'crew', members: member('ann', 'bob') }, 'CREW')
    await change('POST', '/Groups', { displayName: 'staff' }, 'STAFF')
    await change('PATCH', at('CREW'), patchOf({ op: 'add', path: 'members', value: member('eve') }))
    await change('PATCH', at('CREW'), patchOf({ op: 'remove', path: `members[value eq "${ids.get('bob')}"]` }))
    await change('PUT', at('CREW'), { displayName: 'crew', members: member('bob') })
    await change('PATCH', at('CREW'), patchOf({ op: 'replace', path: 'displayName', value: 'team' }))
    const nested = await change('PATCH', at('STAFF'), patchOf({ op: 'add', path: 'members', value: member('CREW') }))
    expect(nested).toMatchObject([{ kind: 'group', action: 'change', target: 'people', name: 'staff' }])
    const gone = await change('DELETE', at('ann'))
    expect(gone.map((step) => [step.kind, 'name' in step && step.name, 'action' in step && step.action])).toEqual([
      ...both.map(() => ['user', 'anna', 'delete']),
      ...both.map(() => ['user', 'eve', 'change']),
    ])
    await change('DELETE', at('CREW'))
  })

  test('are refused what a target would refuse, and remember nothing of it', async () => {
    const { send, dump, second, state } = await open(await freshUrl())
    second.put({ userID: 'taken', attributes: { title: ['Sir'] } })
    const { body } = await send('POST', '/Users', { userName: 'ann' })
    const before = await dump()
    const rename = patchOf({ op: 'replace', path: 'userName', value: 'taken' })
    const shown = await send('PATCH', `/Users/${body['id']}`, rename, dry)
    expect([shown.status, shown.body['scimType']], JSON.stringify(shown.body)).toEqual([409, 'uniqueness'])
    second.before = () => {
      throw new GatewayError('TARGET_UNREACHABLE', 'down')
    }
    const crew = { displayName: 'crew', members: [{ value: String(body['id']) }] }
    expect((await send('POST', '/Groups', crew, dry)).status).toBe(503)
    second.before = () => {}
    expect(await dump()).toEqual(before)
    expect((await send('POST', '/Groups', { displayName: 'crew' })).status).toBe(201)
    // A creation that failed part way could be continued.
    expect((await send('POST', '/Groups', { displayName: 'crew' })).status).toBe(409)
    expect((await state())['second']?.user['ann']?.groups).toEqual([])
  })

  test('do not try an unfinished change again', async () => {
    const { send, dump, second } = await open(await freshUrl())
    const { body } = await send('POST', '/Users', { userName: 'ann' })
    const address = `/Users/${body['id']}`
    second.before = ({ method }) => {
      if (method !== 'findUser') throw new GatewayError('TARGET_UNREACHABLE', 'down')
    }
    const title = patchOf({ op: 'replace', path: 'title', value: 'Dr' })
    expect((await send('PATCH', address, title)).status).toBe(503)
    second.before = () => {}
    const before = await dump()
    const shown = await send('PATCH', address, title, dry)
    expect([shown.status, shown.headers['retry-after'] ?? shown.body['detail']]).toEqual([
      503,
      'An earlier change of the same user or group is unfinished. Try again.',
    ])
    expect((await send('DELETE', address, undefined, dry)).status).toBe(503)
    expect((await send('POST', '/Users', { userName: 'ann' }, dry)).status).toBe(503)
    expect(await dump()).toEqual(before)
  })
})
