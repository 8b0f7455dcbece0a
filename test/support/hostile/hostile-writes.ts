import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasPasswords, nestsGroups } from '#sdk/target/target.ts'
import { accepted, fails, same } from '#testing/hostile/hostile-checks.ts'
import type { Entry } from '#testing/hostile/hostile-entry.ts'
import type { TargetOperation } from '#testing/hostile/hostile-operations.ts'
import type { Stage } from '#testing/hostile/hostile-stage.ts'
import { harmless, other } from '#testing/hostile/hostile-values.ts'

/** Creates groups and users; if the target rejects a value, as it may, its number replaces it. */
export async function come(stage: Stage, entries: readonly Entry[]): Promise<void> {
  const { target, groups, maker, given, attributes, request, bounds, did, each, may, mayRefuse } = stage
  const makeGroup = async (entry: Entry): Promise<void> => {
    const { value } = entry
    const create = async () => maker?.createGroup(entry.group, stage.describe(entry.text), request)
    if (await accepted(create, may(['group', 'text of group'], [value]))) return
    if (mayRefuse('group', value)) entry.group = harmless(value)
    if (mayRefuse('text of group', value)) entry.text = harmless(value)
    await create()
  }
  const makeUser = async (entry: Entry): Promise<void> => {
    const { value } = entry
    const create = () => target.createUser(stage.asUser(entry), attributes, request)
    const places = maker === undefined ? (['login', 'value', 'group'] as const) : (['login', 'value'] as const)
    if (await accepted(create, may(places, entry.values))) return
    if (mayRefuse('login', value)) entry.login = harmless(value)
    if (mayRefuse('group', value) && maker === undefined && given === undefined) entry.group = harmless(value)
    if (mayRefuse('value', value)) entry.one = harmless(value)
    entry.many = entry.many.map((one) => (mayRefuse('value', one) ? harmless(one) : one))
    await create()
  }
  if (maker !== undefined) {
    await each(entries, (entry) => (maker === groups ? did('create group', () => makeGroup(entry)) : makeGroup(entry)))
  }
  await each(entries, async (entry) => {
    const { value, values } = entry
    await did('create user', () => makeUser(entry), values.length)
    if (!hasPasswords(target) || !stage.isDue('set password', bounds.passwords)) return
    const set = () => target.setUserPassword(stage.asUser(entry), value, request)
    await did('set password', () => accepted(set, may(['password'], [value])))
  })
}

/** Each user moves from the group of its own value to that of the next. */
export async function change(stage: Stage, entries: readonly Entry[]): Promise<void> {
  const { target, groups, attributes, request, bounds, did, each } = stage
  const isBound = (operation: TargetOperation): boolean =>
    target.keepsVersions === true && stage.isDue(operation, bounds.versions)
  await each(entries, async (entry, i) => {
    const { value, values } = entry
    if (isBound('change user of version')) {
      const bound = syncOptions(attributes, { expectedVersion: value })
      const deleting = () => target.deleteUser(userOf(entry.login), request, { expectedVersion: value })
      const changing = () => target.syncUser(userOf(entry.login), bound, request)
      await did('change user of version', () => fails(changing, ['VERSION_MISMATCH']))
      await did('delete user of version', () => fails(deleting, ['VERSION_MISMATCH']))
    }
    entry.one = other(entry.one)
    const [kept = '', second = ''] = values.length === 1 ? entry.many.slice(1) : ['', '']
    entry.many =
      second === '' && kept !== ''
        ? [kept, `${kept}+`]
        : entry.many.map((text, k) => (k % 2 === 0 ? other(text) : text))
    entry.home = entries[(i + 1) % entries.length] ?? entry
    const newUserID = other(entry.login)
    const renames = target.renamesUsers === true
    const sync = () =>
      target.syncUser(stage.asUser(entry), syncOptions(attributes, renames ? { newUserID } : {}), request)
    const others: readonly TargetOperation[] = renames ? ['change memberships', 'rename user'] : ['change memberships']
    await did('change attributes', () => did(others, sync), values.length)
    if (renames) entry.login = newUserID
  })
  if (groups === undefined) return
  await each(entries, async (entry) => {
    if (isBound('delete group of version')) {
      const deleting = () => groups.deleteGroup(entry.group, request, { expectedVersion: entry.value })
      await did('delete group of version', () => fails(deleting, ['VERSION_MISMATCH']))
    }
    const change = { newName: other(entry.group), attributes: stage.describe(other(entry.text)) }
    const update = () => groups.updateGroup(entry.group, change, request)
    await did(['rename group', 'change group'], () => (stage.fixedGroups ? fails(update, ['NOT_SUPPORTED']) : update()))
    if (stage.fixedGroups) return
    entry.group = other(entry.group)
    entry.text = other(entry.text)
  })
}

/** Adds all other groups to the first as members, which may not contain itself. */
export async function nest(stage: Stage, entries: readonly Entry[]): Promise<void> {
  const { groups, lookups, request, did, each } = stage
  const [first] = entries
  if (groups === undefined || !nestsGroups(groups) || first === undefined) return
  await each(entries, async (entry) => {
    const id = (await lookups.lookupGroupByName(entry.group, { members: false }))?.id ?? ''
    const change = { add: [{ id, name: entry.group }], remove: [] }
    const nesting = () => groups.changeMemberGroups(first.group, change, request)
    await did('nest group', () => (entry === first ? fails(nesting, ['CONFLICT']) : nesting()))
    await did('groups above', async () => {
      const found = await lookups.containingGroups?.([id, entry.value])
      const above = found?.get(id)?.map(({ name, direct }) => ({ name, direct })) ?? []
      same(above, entry === first ? [] : [{ name: first.group, direct: true }])
    })
  })
}

export async function go({ target, groups, maker, request, did, each }: Stage, entries: readonly Entry[]) {
  await each(entries, async (entry) => {
    await did('delete user', () => target.deleteUser(userOf(entry.login), request))
    const remove = async () => maker?.deleteGroup(entry.group, request)
    await (groups === undefined ? remove() : did('delete group', remove))
  })
}
