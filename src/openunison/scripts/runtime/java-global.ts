import { ArrayList } from '#openunison/scripts/java/collections.ts'
import { HashMap, HashSet } from '#openunison/scripts/java/hash-map.ts'
import { writeLog } from '#openunison/scripts/java/host-bridge.ts'
import { IllegalArgumentException, UnsupportedOperationException } from '#openunison/scripts/java/java-exception.ts'
import { typeName } from '#openunison/scripts/java/java-name.ts'
import { type JavaType, javaTypes, namelessTypes } from '#openunison/scripts/java/java-types.ts'
import { itemsOf, javaText } from '#openunison/scripts/java/java-value.ts'

/** The roots by which a script may name a package without `Packages`. */
export const packageRoots = ['java', 'javax', 'com', 'org', 'edu', 'net'] as const

const typeObjects = new Map<string, object>()

/** The type as scripts use it. An unsupported one may be named, and fails when it is used. */
function typeOf(name: unknown): object {
  const wanted = typeName(javaText(name))
  const held = typeObjects.get(wanted)
  if (held !== undefined) return held
  const type = javaTypes.get(wanted)
  const object = type === undefined ? unserved(wanted) : served(wanted, type)
  typeObjects.set(wanted, object)
  return object
}

const served = (name: string, { value, constructs }: JavaType): object =>
  constructs
    ? value
    : new Proxy(value, {
        construct: () => {
          throw new IllegalArgumentException(`${name} has no constructor`)
        },
        set: () => false,
        defineProperty: () => false,
        deleteProperty: () => false,
        setPrototypeOf: () => false,
      })

function unserved(name: string): object {
  const refuse = (): never => {
    throw new UnsupportedOperationException(`the Java type ${name} is not served here`)
  }
  const get = (_: object, member: string | symbol) => (typeof member === 'symbol' ? undefined : refuse())
  return new Proxy(function type() {}, { get, set: refuse, construct: refuse, apply: refuse })
}

/** `java.util.HashMap` and `Packages.java.util.HashMap`: a package until a type has the name. */
function packageOf(name: string): object {
  return new Proxy(Object.freeze(Object.create(null)), {
    get: (_, member) => {
      if (typeof member === 'symbol') return undefined
      const path = name === '' ? member : `${name}.${member}`
      return /^[A-Z]/.test(member) ? typeOf(path) : packageOf(path)
    },
  })
}

const nameOf = new Map([...javaTypes, ...namelessTypes].map(([name, { value }]) => [value, name]))

const isJavaObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && nameOf.has(Object(value).constructor)

/** The global `Java` of scripts. */
const java = {
  type: typeOf,
  from: (collection: unknown) => itemsOf(collection),
  /** Arrays stay unchanged; a collection type converts them. */
  to: (items: unknown, type?: unknown) => {
    if (type === HashSet) return new HashSet(items)
    if (type === ArrayList) return new ArrayList(items)
    return itemsOf(items)
  },
  isJavaObject,
  isType: (value: unknown) => nameOf.has(Object(value)) || [...typeObjects.values()].includes(Object(value)),
  typeName: (type: unknown) => nameOf.get(Object(type)),
}

/** The supported members of `Java`. */
export const javaMembers: readonly string[] = Object.keys(java)

const printed = (values: readonly unknown[]): string => values.map(javaText).join(' ')

/** The globals of every script, besides JavaScript itself. `state` is its own. */
export function scriptGlobals(): Record<string, unknown> {
  const to =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (...values: unknown[]) =>
      writeLog(level, printed(values))
  return {
    Java: java,
    Packages: packageOf(''),
    ...Object.fromEntries(packageRoots.map((root) => [root, packageOf(root)])),
    print: to('info'),
    console: { log: to('info'), debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') },
    labels: new HashMap(),
    annotations: new HashMap(),
    globals: new HashMap(),
  }
}
