import { type JavaType, javaTypes, namelessTypes } from '#legacy-script/java/java-types.ts'

/** What scripts may use of a type. */
export interface ServedType {
  readonly name: string
  readonly constructs: boolean
  readonly statics: readonly string[]
  readonly methods: readonly string[]
  /** Its lists can be used like arrays as well. */
  readonly isArray: boolean
}

/** Of JavaScript's or the runtime's own making. */
const hiddenStatics = new Set(['length', 'name', 'prototype', 'javaName'])
const hiddenMethods = new Set(['constructor', 'toJSON', 'removeItem', 'javaName'])
const ends: ReadonlySet<object> = new Set([Function.prototype, Object.prototype, Error, Error.prototype])

function describe([name, { value, constructs }]: readonly [string, JavaType]): ServedType {
  return {
    name,
    constructs,
    statics: namesOf(value, typeof value === 'function' ? hiddenStatics : new Set()),
    methods: typeof value === 'function' ? namesOf(value.prototype, hiddenMethods) : [],
    isArray: /\.(?:ArrayList|LinkedList)$/.test(name),
  }
}

/** The object's own names and those it inherits, down to what JavaScript gives to all. */
function namesOf(object: object, hidden: ReadonlySet<string>): string[] {
  const names: string[] = []
  for (let at: object | null = object; at !== null && !ends.has(at); at = Object.getPrototypeOf(at)) {
    names.push(...Object.getOwnPropertyNames(at).filter((name) => !hidden.has(name)))
  }
  return [...new Set(names)].sort()
}

const all = new Map([...javaTypes, ...namelessTypes].map((entry) => [entry[0], describe(entry)]))

/** The types that scripts may name, in the order of their names. */
export const servedTypes: readonly ServedType[] = [...javaTypes.keys()].sort().flatMap((name) => all.get(name) ?? [])

/** The types of what methods give. */
export const givenTypes: readonly ServedType[] = [...namelessTypes.keys()].sort().flatMap((name) => all.get(name) ?? [])

/** Also those that no script can name. */
export const servedType = (name: string): ServedType | undefined => all.get(name)

export const canBeNamed = (name: string): boolean => javaTypes.has(name)
