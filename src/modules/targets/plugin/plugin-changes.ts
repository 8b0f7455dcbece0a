import type { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { SyncOptions, TargetChange } from '#sdk/target.ts'

/** What bringing `before` to `wanted` changes: the audit of a plug-in that keeps none itself. */
export function changesOfSync(
  before: User | undefined,
  wanted: User,
  options: Pick<SyncOptions, 'addOnly' | 'attributes'>,
): TargetChange[] {
  const entry: TargetChange[] =
    before === undefined ? [{ subject: 'entry', action: 'add', attribute: 'userID', value: wanted.userID }] : []
  const attributes = options.attributes.flatMap((name) =>
    changesOfValues(name, before?.attributes.values(name) ?? [], wanted.attributes.values(name), options.addOnly),
  )
  const held = before?.groups ?? []
  const groups = [
    ...missingFrom(held, wanted.groups).map((value) => change('group', 'add', 'groups', value)),
    ...(options.addOnly ? [] : missingFrom(wanted.groups, held)).map((v) => change('group', 'delete', 'groups', v)),
  ]
  return [...entry, ...attributes, ...groups]
}

/** What bringing the group to the name and these attributes changes; those it does not tell count as they should be. */
export function changesOfGroup(
  before: Group,
  name: string,
  wanted: Iterable<readonly [string, readonly string[]]>,
): TargetChange[] {
  const { attributes, description } = before
  const renamed = before.name === name ? [] : [change('entry', 'replace', 'name', name)]
  const held = (attribute: string, values: readonly string[]): readonly string[] => {
    if (attribute.toLowerCase() === 'description' && description !== undefined) return [description]
    return attributes === undefined ? values : attributes.values(attribute)
  }
  const changed = [...wanted].flatMap(([attribute, values]) =>
    changesOfValues(attribute, held(attribute, values), values, false),
  )
  return [...renamed, ...changed]
}

export const valuesAdded = (attributes: Attributes): TargetChange[] =>
  [...attributes].flatMap(([name, values]) => values.map((value) => change('attribute', 'add', name, value)))

export const changesOfDelete = ({ userID }: User): TargetChange[] => [change('entry', 'delete', 'userID', userID)]

function changesOfValues(
  name: string,
  before: readonly string[],
  wanted: readonly string[],
  addOnly: boolean,
): TargetChange[] {
  const added = missingFrom(before, wanted)
  const removed = addOnly ? [] : missingFrom(wanted, before)
  const [value] = added
  if (value !== undefined && added.length === 1 && removed.length === 1 && wanted.length === 1) {
    return [change('attribute', 'replace', name, value)]
  }
  return [
    ...added.map((text) => change('attribute', 'add', name, text)),
    ...removed.map((text) => change('attribute', 'delete', name, text)),
  ]
}

const change = (
  subject: TargetChange['subject'],
  action: TargetChange['action'],
  attribute: string,
  value: string,
): TargetChange => ({ subject, action, attribute, value })

function missingFrom(held: readonly string[], wanted: readonly string[]): string[] {
  const present = new Set(held)
  return [...new Set(wanted)].filter((value) => !present.has(value))
}
