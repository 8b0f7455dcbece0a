import type { Issue, Path } from '#kernel/issues.ts'
import { type SecretValues, withoutWord } from '#kernel/secret-values.ts'

/** Shorter values and parts are words that messages about any value have. */
const shortestValue = 3
const shortestPart = 4

interface HiddenPlace {
  readonly path: Path
  readonly value: string
  readonly shown: string
}

/** The values of secrets and of the environment that a configuration has, and where. */
export class HiddenValues {
  readonly values: SecretValues
  readonly #places = new Map<object, HiddenPlace[]>()

  constructor(values: SecretValues) {
    this.values = values
  }

  /** Messages about this place, and about those beside it, have no part of the value either. */
  at(document: object, path: Path, value: string, shown: string): void {
    const places = this.#places.get(document)
    const place = { path, value, shown }
    if (places === undefined) this.#places.set(document, [place])
    else places.push(place)
    this.values.add(value, shown)
  }

  /** The message of the issue with names instead of values. */
  messageOf({ document, path, message }: Issue): string {
    const places = document === undefined ? [] : (this.#places.get(document) ?? [])
    return places.reduce((text, place) => {
      const common = place.path.findIndex((step, i) => path[i] !== step)
      const isBeside = common === place.path.length - 1 && this.values.hides(place.value)
      return common === -1 || isBeside ? withoutParts(text, place) : text
    }, this.values.without(message))
  }

  /** The name of a part of the configuration, which messages quote. */
  nameOf(name: string): string {
    return this.values.without(`"${name}"`).slice(1, -1)
  }
}

/** Messages quote parts of lists, addresses and names, or have them in another form. */
function withoutParts(message: string, { value, shown }: HiddenPlace): string {
  const whole = value.toLowerCase()
  const isPart = (text: string): boolean => text !== '' && whole.includes(text.toLowerCase())
  const quoted = message.replace(/"((?:[^"\\]|\\.)*)"/g, (found, inner: string) =>
    isPart(inner) ? JSON.stringify(shown) : found,
  )
  const text = value.length < shortestValue ? quoted : withoutWord(quoted, value, shown)
  const words = new Set(wordsOf(whole.replace(/^[a-z]+:/, '')))
  return text.replace(/[^\s"'`()]+/g, (run) => {
    return wordsOf(run.replace(/#\[[\w.-]+\]/g, ' ').toLowerCase()).some((word) => words.has(word)) ? shown : run
  })
}

const wordsOf = (text: string): string[] => text.split(/[^\p{L}\p{N}]+/u).filter((word) => word.length >= shortestPart)
