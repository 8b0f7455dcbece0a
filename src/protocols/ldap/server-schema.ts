import { GatewayError } from '#kernel/errors.ts'
import { type LdapEntry, textsOf } from './ldap-entry.ts'
import type { LdapServer } from './ldap-server.ts'

/** A class, attribute type or content rule of a server's schema (RFC 4512 4.1). Names are in lower case. */
interface Definition {
  readonly oid: string
  readonly names: readonly string[]
  /** The words behind the keywords. */
  readonly lists: ReadonlyMap<string, readonly string[]>
  /** An attribute type of one value. */
  readonly isSingle: boolean
}

const keywords = ['SUP', 'AUX', 'MUST', 'MAY', 'EQUALITY', 'SUBSTR', 'USAGE'] as const

/** How a server compares the values of an attribute; undefined where it can't. Names are in lower case. */
export interface MatchingRules {
  readonly equality: string | undefined
  readonly substring: string | undefined
}

/** More definitions than a directory has. */
const maxDefinitions = 20_000

/** The server's rules about the attributes of its classes. */
export class ServerSchema {
  readonly #classes: ReadonlyMap<string, Definition>
  readonly #types: ReadonlyMap<string, Definition>
  readonly #rules: ReadonlyMap<string, Definition>
  /** The attributes that have one value at most, by every name and in lower case. */
  readonly singleTypes: ReadonlySet<string>
  /** Active Directory shows its attribute types without their rules. */
  readonly #showsRules: boolean

  constructor(classes: readonly string[], types: readonly string[], rules: readonly string[] = []) {
    this.#classes = byName(classes)
    this.#types = byName(types)
    this.#rules = byName(rules)
    this.singleTypes = new Set(this.#types.entries().flatMap(([name, { isSingle }]) => (isSingle ? [name] : [])))
    this.#showsRules = this.#types.values().some(({ lists }) => (lists.get('EQUALITY')?.length ?? 0) > 0)
  }

  /** The rules of an attribute, with those of the types above it; undefined if they aren't known. */
  rulesOf(attribute: string): MatchingRules | undefined {
    const [name = ''] = attribute.toLowerCase().split(';')
    const type = this.#types.get(name)
    if (type === undefined || !this.#showsRules) return undefined
    return { equality: this.#ruleOf(type, 'EQUALITY'), substring: this.#ruleOf(type, 'SUBSTR') }
  }

  #ruleOf(type: Definition, keyword: 'EQUALITY' | 'SUBSTR'): string | undefined {
    const seen = new Set<Definition>()
    for (let one: Definition | undefined = type; one !== undefined && !seen.has(one); ) {
      seen.add(one)
      const [rule] = one.lists.get(keyword) ?? []
      if (rule !== undefined) return rule
      one = this.#types.get(one.lists.get('SUP')?.[0] ?? '')
    }
    return undefined
  }

  hasClass(name: string): boolean {
    return this.#classes.has(name.toLowerCase())
  }

  /**
   * The attributes, by every name and in lower case, that an entry of these classes may have; undefined if one of
   * the classes isn't known or allows everything.
   */
  allowed(classes: readonly string[]): ReadonlySet<string> | undefined {
    const allowed = new Set<string>()
    const seen = new Set<string>()
    const pending = classes.map((name) => name.toLowerCase())
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      if (seen.has(name)) continue
      seen.add(name)
      const definition = this.#classes.get(name)
      if (definition === undefined || definition.names.includes('extensibleobject')) return undefined
      for (const one of [definition, this.#rules.get(definition.oid)]) {
        for (const keyword of ['SUP', 'AUX']) pending.push(...(one?.lists.get(keyword) ?? []))
        for (const keyword of ['MUST', 'MAY']) for (const type of one?.lists.get(keyword) ?? []) allowed.add(type)
      }
    }
    for (const name of [...allowed]) for (const alias of this.#types.get(name)?.names ?? []) allowed.add(alias)
    return allowed
  }

  /** An entry of these classes can't have the attribute. Operational attributes belong to no class. */
  refuses(classes: readonly string[], attribute: string): boolean {
    const [name = ''] = attribute.toLowerCase().split(';')
    const [usage = 'userapplications'] = this.#types.get(name)?.lists.get('USAGE') ?? []
    return usage === 'userapplications' && this.allowed(classes)?.has(name) === false
  }
}

/** Undefined if the server doesn't show its schema. Throws TARGET_UNREACHABLE while it doesn't answer. */
async function readServerSchema(server: LdapServer): Promise<ServerSchema | undefined> {
  const read = async (base: string, attributes: readonly string[]): Promise<LdapEntry | undefined> =>
    (await server.find({ base, scope: 'base', filter: { kind: 'present', attribute: 'objectClass' }, attributes }))[0]
  try {
    const place = valuesIn(await read('', ['subschemaSubentry']), 'subschemaSubentry')[0]
    if (place === undefined) return undefined
    const entry = await read(place, ['objectClasses', 'attributeTypes', 'dITContentRules'])
    const classes = valuesIn(entry, 'objectClasses')
    if (classes.length === 0) return undefined
    return new ServerSchema(classes, valuesIn(entry, 'attributeTypes'), valuesIn(entry, 'dITContentRules'))
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'TARGET_FAILED') return undefined
    throw error
  }
}

/** How long a server's schema is cached. */
const schemaMillis = 10 * 60 * 1000

export type SchemaOf = () => Promise<ServerSchema | undefined>

/** `readServerSchema`, whose answer is cached for a while. */
export function cachedSchema(server: LdapServer): SchemaOf {
  let known: { readonly schema: ServerSchema | undefined; readonly until: number } | undefined
  return async () => {
    if (known === undefined || known.until <= performance.now()) {
      known = { schema: await readServerSchema(server), until: performance.now() + schemaMillis }
    }
    return known.schema
  }
}

function valuesIn(entry: LdapEntry | undefined, name: string): readonly string[] {
  const all = entry === undefined ? [] : textsOf(entry, () => false)
  return all.find(([own]) => own.toLowerCase() === name.toLowerCase())?.[1] ?? []
}

function byName(texts: readonly string[]): ReadonlyMap<string, Definition> {
  const found = new Map<string, Definition>()
  for (const text of texts.slice(0, maxDefinitions)) {
    const definition = readDefinition(text)
    for (const name of [definition.oid, ...definition.names]) found.set(name, definition)
  }
  return found
}

/**
 * `( 2.5.6.6 NAME 'person' SUP top STRUCTURAL MUST ( sn $ cn ) MAY ( userPassword ) )`; leaves out what it can't
 * read.
 */
function readDefinition(text: string): Definition {
  const plain = text.replaceAll(/'(?:[^'\\]|\\.)*'/g, (quoted) => (/^'[\w.;-]+'$/.test(quoted) ? quoted : "''"))
  const oid = /^\s*\(\s*([\w.-]+)/.exec(plain)?.[1]?.toLowerCase() ?? ''
  const names = /\sNAME\s+(?:\(([^)]*)\)|('[^']*'))/.exec(plain)
  const lists = keywords.map((keyword) => {
    const match = new RegExp(`\\s${keyword}\\s+(?:\\(([^)]*)\\)|([\\w.;-]+))`).exec(plain)
    return [keyword, words(match?.[1] ?? match?.[2] ?? '')] as const
  })
  return {
    oid,
    names: words(names?.[1] ?? names?.[2] ?? ''),
    lists: new Map(lists),
    isSingle: /\sSINGLE-VALUE\b/.test(plain),
  }
}

const words = (list: string): string[] => (list.match(/[\w.;-]+/g) ?? []).map((word) => word.toLowerCase())
