/** How many values one label may have. */
const maxValues = 500
/** Counts for all values beyond that. */
export const otherValue = 'other'

/**
 * Bounds the values of labels, so that a large or often changed configuration cannot fill the memory of the gateway and of
 * Prometheus. The first values of each label keep their names; all others share one.
 */
export class LabelBound {
  readonly #known = new Map<string, Set<string>>()

  /** The labels to count with. */
  of<T extends Readonly<Record<string, string>>>(labels: T): T {
    let bounded: Record<string, string> | undefined
    for (const [label, value] of Object.entries(labels)) {
      const kept = this.value(label, value)
      if (kept === value) continue
      bounded ??= { ...labels }
      bounded[label] = kept
    }
    return (bounded as T | undefined) ?? labels
  }

  value(label: string, value: string): string {
    let values = this.#known.get(label)
    if (values === undefined) {
      values = new Set()
      this.#known.set(label, values)
    }
    if (values.has(value)) return value
    if (values.size >= maxValues) return otherValue
    values.add(value)
    return value
  }
}
