import { isSecretAttribute } from '#identity/attributes.ts'
import type { Foreseen, ForeseenAttribute, ForeseenEntry, ForeseenStep } from '#sdk/workflow/foreseen.ts'

/** There is more than anybody would read, or look-ups and time are used up: what was noted so far is told. */
export class ForesightEnds extends Error {}

const maxSteps = 100
const maxNames = 50
const maxValues = 20
const maxLength = 500
/** Characters of all that is told. */
const maxTotal = 64 * 1024

/** A change of attributes, from what there is to what there would be. */
export type ValueChange = readonly [name: string, before: readonly string[], after: readonly string[]]

export interface EntryChange extends Pick<ForeseenEntry, 'kind' | 'action' | 'target' | 'name' | 'newName'> {
  readonly attributes: readonly ValueChange[]
  readonly joins?: readonly string[]
  readonly leaves?: readonly string[]
}

/** What is foreseen, noted as it may be shown: secrets are named without values, long lists and texts are cut. */
export class ForesightNotes {
  readonly #steps: ForeseenStep[] = []
  #left = maxTotal
  #whole = true

  get foreseen(): Foreseen {
    return { steps: [...this.#steps], whole: this.#whole }
  }

  /** More follows than is noted. */
  end(): void {
    this.#whole = false
  }

  /** Throws ForesightEnds when there is no room for it. Of one access only the last end is told, where the first was. */
  add(step: Exclude<ForeseenStep, ForeseenEntry>): void {
    const shown = this.#cutTexts(step)
    const earlier = this.#steps.findIndex((one) => isSameEnd(one, shown))
    if (earlier < 0) this.#push(shown)
    else this.#steps[earlier] = shown
  }

  /** Nothing is noted where nothing would change. */
  addEntry({ kind, action, target, name, newName, attributes, joins = [], leaves = [] }: EntryChange): void {
    const changed = attributes.filter(([, before, after]) => !sameValues(before, after))
    if (action === 'change' && newName === undefined && changed.length + joins.length + leaves.length === 0) return
    const cut =
      [changed, joins, leaves].some(({ length }) => length > maxNames) ||
      changed.some(([, before, after]) => before.length > maxValues || after.length > maxValues)
    const names = (list: readonly string[]): string[] => list.slice(0, maxNames).map((one) => this.#cut(one))
    this.#push({
      kind,
      action,
      target,
      name: this.#cut(name),
      ...(newName === undefined ? {} : { newName: this.#cut(newName) }),
      attributes: changed.slice(0, maxNames).map((change) => this.#attribute(change)),
      joins: names(joins),
      leaves: names(leaves),
      cut,
    })
  }

  #push(step: ForeseenStep): void {
    if (this.#steps.length >= maxSteps || this.#left < 0) throw new ForesightEnds('there is more than is shown')
    this.#steps.push(step)
  }

  #attribute([name, before, after]: ValueChange): ForeseenAttribute {
    const shown = { name: this.#cut(name), secret: isSecretAttribute(name) }
    if (shown.secret) return { ...shown, before: [], after: [] }
    const values = (list: readonly string[]): string[] => list.slice(0, maxValues).map((one) => this.#cut(one))
    return { ...shown, before: values(before), after: values(after) }
  }

  #cutTexts<S extends ForeseenStep>(step: S): S {
    const entries = Object.entries(step).map(([key, value]) => [
      key,
      typeof value === 'string' ? this.#cut(value) : value,
    ])
    return Object.fromEntries(entries) as S
  }

  #cut(text: string): string {
    const shown = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
    this.#left -= shown.length
    return shown
  }
}

const isSameEnd = (a: ForeseenStep, b: ForeseenStep): boolean =>
  a.kind === 'end' && b.kind === 'end' && a.target === b.target && a.of === b.of && a.name === b.name

const sameValues = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((value, i) => value === b[i])
