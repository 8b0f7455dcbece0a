/** Where a command is to be run. */
export type Shell = 'posix' | 'powershell'

type Quoting = 'bare' | 'single' | 'double'

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly name: string; readonly quoting: Quoting }

/** A command with places for values, which come out as what they are and never as a part of the command. */
export interface ShellTemplate {
  readonly names: readonly string[]
  /** Undefined where a value cannot be written in that shell, such as a line break outside of quotes. */
  render(values: Readonly<Record<string, string>>): string | undefined
}

const place = /\\\$|\$([A-Za-z_][\w.]*)\$/g
const safe = /^[\w@%+=:,./-]+$/

/**
 * Reads a command in which `$name$` stands for a value and `\$` for a dollar. Throws an Error for a command in which it
 * cannot be told how the shell would read a value.
 */
export function parseShellTemplate(source: string, shell: Shell): ShellTemplate {
  const tracker = shell === 'posix' ? new PosixQuoting() : new PowerShellQuoting()
  const parts: Part[] = []
  let at = 0
  const literal = (text: string): void => {
    tracker.read(text)
    parts.push({ kind: 'text', text })
  }
  for (const match of source.matchAll(place)) {
    literal(source.slice(at, match.index))
    at = match.index + match[0].length
    const name = match[1]
    if (name === undefined) literal('$')
    else parts.push({ kind: 'value', name, quoting: tracker.quotingFor(name) })
  }
  literal(source.slice(at))
  tracker.end()
  const names = parts.flatMap((part) => (part.kind === 'value' ? [part.name] : []))
  const quote = shell === 'posix' ? quotePosix : quotePowerShell
  return {
    names: [...new Set(names)],
    render: (values) => {
      const texts = parts.map((part) =>
        part.kind === 'text' ? part.text : quote(values[part.name] ?? '', part.quoting),
      )
      return texts.includes(undefined) ? undefined : texts.join('').trim()
    },
  }
}

/** Follows quotes and `$(…)`, as far as a value's place depends on them. */
class PosixQuoting {
  readonly #stack: Quoting[] = ['bare']
  #escaped = false
  #previous = ''

  get #now(): Quoting {
    return this.#stack.at(-1) ?? 'bare'
  }

  read(text: string): void {
    for (const character of text) {
      if (this.#escaped) this.#escaped = false
      else this.#take(character)
      this.#previous = character
    }
  }

  quotingFor(name: string): Quoting {
    if (this.#escaped || this.#previous === '$') throw new Error(`"$${name}$" follows a backslash or a dollar`)
    if (this.#stack.length > 2 || (this.#stack.length === 2 && this.#now === 'bare')) {
      throw new Error(`"$${name}$" is inside $(…), where it cannot be quoted`)
    }
    this.#previous = ''
    return this.#now
  }

  end(): void {
    if (this.#stack.length > 1) throw new Error('a quote or a bracket is not closed')
  }

  #take(character: string): void {
    const now = this.#now
    const toggle = (quoting: Quoting): void => {
      if (now === quoting) this.#stack.pop()
      else this.#stack.push(quoting)
    }
    if (now === 'single') {
      if (character === "'") toggle('single')
      return
    }
    if (character === '\\') this.#escaped = true
    else if (character === '`') throw new Error('write $(…) instead of `…`')
    else if (character === '(' && this.#previous === '$') this.#stack.push('bare')
    else if (character === '"') toggle('double')
    else if (now === 'double') return
    else if (character === ')' && this.#stack.length > 1) this.#stack.pop()
    else if (character === '<' && this.#previous === '<') throw new Error('here-documents cannot be used')
    else if (character === "'" && this.#previous === '$') throw new Error("$'…' cannot be used")
    else if (character === "'") toggle('single')
  }
}

class PowerShellQuoting {
  #now: Quoting = 'bare'
  #escaped = false

  read(text: string): void {
    for (const character of text) {
      if (this.#escaped) this.#escaped = false
      else if (this.#now === 'single') this.#now = character === "'" ? 'bare' : 'single'
      else if (character === '`') this.#escaped = true
      else if (this.#now === 'double') this.#now = character === '"' ? 'bare' : 'double'
      else if (character === '"') this.#now = 'double'
      else if (character === "'") this.#now = 'single'
    }
  }

  quotingFor(name: string): Quoting {
    if (this.#escaped) throw new Error(`"$${name}$" follows a backtick`)
    return this.#now
  }

  end(): void {
    if (this.#now !== 'bare') throw new Error('a quote is not closed')
  }
}

function quotePosix(value: string, quoting: Quoting): string | undefined {
  if (value.includes('\0')) return undefined
  if (safe.test(value)) return value
  if (quoting === 'double') return value.replace(/[\\"$`]/g, '\\$&')
  const inner = value.replaceAll("'", String.raw`'\''`)
  return quoting === 'single' ? inner : `'${inner}'`
}

/** PowerShell takes typographic quotes for quotes, so they are escaped as well. */
function quotePowerShell(value: string, quoting: Quoting): string | undefined {
  if (safe.test(value)) return value
  if (quoting === 'double') {
    const inner = value
      .replace(/[`"$\u201c-\u201e]/g, '`$&')
      .replaceAll('\r', '')
      .replaceAll('\n', '`n')
    return hasControls(inner) ? undefined : inner
  }
  if (hasControls(value)) return undefined
  if (quoting === 'single') return value.replace(/['\u2018-\u201b]/g, '$&$&')
  return value === '' ? "''" : value.replace(/[^\w@%+=:,./-]/gu, '`$&')
}

const hasControls = (text: string): boolean => [...text].some((character) => character < ' ' || character === '\x7f')
