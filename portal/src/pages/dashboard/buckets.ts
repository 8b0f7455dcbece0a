/** One part of a time, with how many of each kind happened in it. */
export interface Bucket<K extends string> {
  readonly from: number
  readonly counts: Readonly<Record<K, number>>
}

interface Span {
  readonly now: number
  readonly millis: number
  readonly parts: number
}

/** Counts by time and kind, in parts that begin with a full hour or day. What happened before or after is left out. */
export function bucketsOf<T, K extends string>(
  items: readonly T[],
  kinds: readonly K[],
  read: (item: T) => { readonly at: string; readonly kind: K },
  { now, millis, parts }: Span,
): readonly Bucket<K>[] {
  const width = millis / parts
  const start = Math.ceil(now / width) * width - millis
  const none = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<K, number>
  const buckets = Array.from({ length: parts }, (_, i) => ({ from: start + i * width, counts: { ...none } }))
  for (const item of items) {
    const { at, kind } = read(item)
    const bucket = buckets[Math.floor((Date.parse(at) - start) / width)]
    if (bucket !== undefined) bucket.counts[kind] += 1
  }
  return buckets
}

/** How many of each kind belong to each name, those with most first; of so many names at most. */
export function countsBy<T, K extends string>(
  items: readonly T[],
  kinds: readonly K[],
  read: (item: T) => { readonly name: string; readonly kind: K },
  most: number,
): readonly { readonly name: string; readonly counts: Readonly<Record<K, number>> }[] {
  const none = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<K, number>
  const found = new Map<string, Record<K, number>>()
  for (const item of items) {
    const { name, kind } = read(item)
    const counts = found.get(name) ?? { ...none }
    counts[kind] += 1
    found.set(name, counts)
  }
  const sum = (counts: Record<K, number>): number => kinds.reduce((all, kind) => all + counts[kind], 0)
  return [...found]
    .map(([name, counts]) => ({ name, counts }))
    .sort((a, b) => sum(b.counts) - sum(a.counts))
    .slice(0, most)
}
