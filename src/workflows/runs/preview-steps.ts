import { isSecretAttribute } from '#identity/attributes.ts'
import type { Preview } from '#sdk/workflow/preview.ts'

/** The preview reached a limit (steps, reads or time): the steps so far are the result. */
export class PreviewLimit extends Error {}

const maxSteps = 100
const maxNames = 50
const maxValues = 20
const maxLength = 500
/** Characters of all texts together. */
const maxTotal = 64 * 1024

type PreviewStep = Preview['steps'][number]
type PreviewEntry = Extract<PreviewStep, { kind: 'user' | 'group' }>

type ValueChange = readonly [name: string, before: readonly string[], after: readonly string[]]

export interface EntryChange extends Pick<PreviewEntry, 'kind' | 'action' | 'target' | 'name' | 'newName'> {
  readonly attributes: readonly ValueChange[]
  readonly joins?: readonly string[]
  readonly leaves?: readonly string[]
}

/** Collects the steps as they may be shown: secrets without values, long lists and texts cut. */
export class PreviewSteps {
  readonly #steps: PreviewStep[] = []
  #left = maxTotal
  #whole = true

  get preview(): Preview {
    return { steps: [...this.#steps], whole: this.#whole }
  }

  /** More steps follow than are listed. */
  end(): void {
    this.#whole = false
  }

  /** Throws PreviewLimit if there is no room. A later expiry of the same access replaces the earlier one. */
  add(step: Exclude<PreviewStep, PreviewEntry>): void {
    const shown = this.#cutTexts(step)
    const earlier = this.#steps.findIndex((one) => isSameEnd(one, shown))
    if (earlier < 0) this.#push(shown)
    else this.#steps[earlier] = shown
  }

  /** Adds nothing if nothing would change. */
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

  #push(step: PreviewStep): void {
    if (this.#steps.length >= maxSteps || this.#left < 0) throw new PreviewLimit('there is more than is shown')
    this.#steps.push(step)
  }

  #attribute([name, before, after]: ValueChange): PreviewEntry['attributes'][number] {
    const shown = { name: this.#cut(name), secret: isSecretAttribute(name) }
    if (shown.secret) return { ...shown, before: [], after: [] }
    const values = (list: readonly string[]): string[] => list.slice(0, maxValues).map((one) => this.#cut(one))
    return { ...shown, before: values(before), after: values(after) }
  }

  #cutTexts<S extends PreviewStep>(step: S): S {
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

const isSameEnd = (a: PreviewStep, b: PreviewStep): boolean =>
  a.kind === 'end' && b.kind === 'end' && a.target === b.target && a.of === b.of && a.name === b.name

const sameValues = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((value, i) => value === b[i])
