/** Everything of `before` is in `after`, in its order; `after` may have more. */
export function isKept(before: unknown, after: unknown): boolean {
  if (Array.isArray(before)) {
    if (!Array.isArray(after)) return false
    let position = 0
    return before.every((member: unknown) => {
      while (position < after.length && !isKept(member, after[position])) position += 1
      position += 1
      return position <= after.length
    })
  }
  if (typeof before === 'object' && before !== null) {
    if (typeof after !== 'object' || after === null) return false
    const members = new Map<string, unknown>(Object.entries(after))
    return Object.entries(before).every(
      ([key, value]) => members.has(key) && (isKept(value, members.get(key)) || isEmptyList(value)),
    )
  }
  return before === after
}

/** Go's null for a list that is empty. */
const isEmptyList = (value: unknown): boolean => value === null
