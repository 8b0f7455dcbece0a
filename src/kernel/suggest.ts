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

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, change))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}
