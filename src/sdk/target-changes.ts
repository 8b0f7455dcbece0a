import type { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import type { SyncOptions, TargetChange } from '#sdk/target.ts'
import { change, changesOfValues, missingFrom } from '#sdk/value-changes.ts'

/** What bringing `before` to `wanted` changes. */
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

export const valuesAdded = (attributes: Attributes): TargetChange[] =>
  [...attributes].flatMap(([name, values]) => values.map((value) => change('attribute', 'add', name, value)))

export const changesOfDelete = ({ userID }: User): TargetChange[] => [change('entry', 'delete', 'userID', userID)]
