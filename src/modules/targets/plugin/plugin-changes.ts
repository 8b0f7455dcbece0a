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
