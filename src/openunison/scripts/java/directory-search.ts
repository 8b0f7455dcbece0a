import { HashSet } from './hash-map.ts'
import { askGateway } from './host-bridge.ts'
import { IllegalArgumentException, NoSuchElementException } from './java-exception.ts'
import { itemsOf, javaText, javaValue } from './java-value.ts'

interface PlainEntry {
  readonly dn: string
  readonly attributes: Readonly<Record<string, readonly string[]>>
}

const scopes = ['base', 'one', 'sub'] as const

/** com.tremolosecurity.proxy.myvd.MyVDConnection: searches of the virtual directory. */
export class MyVDConnection {
  /** Scope 0 is the entry, 1 the level below it, 2 the whole tree. An empty list of attributes requests all. */
  search(base: unknown, scope: unknown, filter: unknown, attributes?: unknown): SearchResults {
    const named = scopes[Number(javaValue(scope))]
    if (named === undefined) throw new IllegalArgumentException(`there is no scope ${javaText(scope)}`)
    const requested = javaValue(attributes) === null ? [] : itemsOf(attributes).map(javaText)
    const request = { base: javaText(base), scope: named, filter: javaText(filter), attributes: requested }
    return new SearchResults(askGateway('search', request) as readonly PlainEntry[])
  }
}

/** com.novell.ldap.LDAPSearchResults. */
export class SearchResults {
  readonly #entries: readonly PlainEntry[]
  #next = 0

  constructor(entries: readonly PlainEntry[]) {
    this.#entries = entries
  }

  hasMore(): boolean {
    return this.#next < this.#entries.length
  }

  next(): SearchEntry {
    const entry = this.#entries[this.#next++]
    if (entry === undefined) throw new NoSuchElementException('there are no more entries')
    return new SearchEntry(entry)
  }
}

/** com.novell.ldap.LDAPEntry. */
export class SearchEntry {
  readonly #entry: PlainEntry

  constructor(entry: PlainEntry) {
    this.#entry = entry
  }

  getDN(): string {
    return this.#entry.dn
  }

  /** Null if the entry has none of that name, in any letter case. */
  getAttribute(name: unknown): SearchAttribute | null {
    const wanted = javaText(name).toLowerCase()
    const found = Object.entries(this.#entry.attributes).find(([held]) => held.toLowerCase() === wanted)
    return found === undefined ? null : new SearchAttribute(...found)
  }

  getAttributeSet(): HashSet {
    return new HashSet(Object.entries(this.#entry.attributes).map((pair) => new SearchAttribute(...pair)))
  }
}

/** com.novell.ldap.LDAPAttribute. */
export class SearchAttribute {
  readonly #name: string
  readonly #values: readonly string[]

  constructor(name: string, values: readonly string[]) {
    this.#name = name
    this.#values = values
  }

  getName(): string {
    return this.#name
  }

  getStringValue(): string | null {
    return this.#values[0] ?? null
  }

  getStringValueArray(): string[] {
    return [...this.#values]
  }
}
