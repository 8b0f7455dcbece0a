/** The known name closest to a mistyped one, or undefined if none is close enough. */
export function nearestName(given: string, known: Iterable<string>): string | undefined {
  const limit = Math.max(1, Math.floor(given.length / 3))
  let best: string | undefined
  let bestDistance = limit + 1
  for (const name of known) {
    if (Math.abs(name.length - given.length) > limit) continue
    const distance = editDistance(given.toLowerCase(), name.toLowerCase())
    if (distance < bestDistance) {
      best = name
      bestDistance = distance
    }
  }
  return best
}

/** ` (did you mean "x"?)`, or nothing: the end of a message about an unknown name. */
export function suggestion(given: string, known: Iterable<string>): string {
  const name = nearestName(given, known)
  return name === undefined ? '' : ` (did you mean "${name}"?)`
}

/** Inserted, removed and changed characters, and swapped neighbours, count one each. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwapped ? (beforeLast[j - 2] ?? 0) + 1 : change
      row.push(Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, change, swap))
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
