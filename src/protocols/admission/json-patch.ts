import { isJsonObject } from '#kernel/json.ts'

/** RFC 6902, of which only what adds or replaces is made here. */
export interface PatchOperation {
  readonly op: 'add' | 'replace'
  readonly path: string
  readonly value: unknown
}

/**
 * The operations that turn `before` into `after`, both of them JSON. Members of lists are told apart by their name or mount path, so that
 * what was put between them is added, and only what changed is replaced. Where something was removed, the whole list or
 * object around it is replaced.
 */
export function diffToPatch(before: unknown, after: unknown): PatchOperation[] {
  return difference(before, after, '')
}

function difference(before: unknown, after: unknown, path: string): PatchOperation[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    if (Object.keys(before).some((name) => !Object.hasOwn(after, name))) return [{ op: 'replace', path, value: after }]
    return Object.entries(after).flatMap(([name, value]) => {
      const inner = `${path}/${escapePointer(name)}`
      return Object.hasOwn(before, name)
        ? difference(before[name], value, inner)
        : [{ op: 'add' as const, path: inner, value }]
    })
  }
  if (isList(before) && isList(after)) return listDifference(before, after, path)
  return before === after ? [] : [{ op: 'replace', path, value: after }]
}

function listDifference(before: readonly unknown[], after: readonly unknown[], path: string): PatchOperation[] {
  const operations: PatchOperation[] = []
  let kept = 0
  for (const [position, value] of after.entries()) {
    const inner = `${path}/${position}`
    if (kept < before.length && isSameMember(before[kept], value)) {
      operations.push(...difference(before[kept], value, inner))
      kept += 1
    } else {
      operations.push({ op: 'add', path: inner, value })
    }
  }
  return kept === before.length ? operations : [{ op: 'replace', path, value: after }]
}

function isSameMember(a: unknown, b: unknown): boolean {
  const key = memberKey(a)
  return key === undefined ? isSame(a, b) : key === memberKey(b)
}

/** A volume may be mounted twice, so a mount is known by its path. */
function memberKey(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined
  const key = value['mountPath'] ?? value['name']
  return typeof key === 'string' ? key : undefined
}

function isSame(a: unknown, b: unknown): boolean {
  if (isList(a) && isList(b)) {
    return a.length === b.length && a.every((value, position) => isSame(value, b[position]))
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const names = Object.keys(a)
    return (
      names.length === Object.keys(b).length &&
      names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
    )
  }
  return a === b
}

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** RFC 6901. */
const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
