/** How the properties of a collection, beside its methods, are read and written from JavaScript. */
export interface ForeignProperties {
  /** Undefined when there is none of that name. */
  read(name: string): unknown
  /** False when it cannot be written. */
  write(name: string, value: unknown): boolean
  remove(name: string): boolean
  names(): string[]
}

export const foreignProperties = Symbol('foreign properties')

interface Foreign {
  [foreignProperties](): ForeignProperties
}

/**
 * A collection of Java as JavaScript sees it: its methods go first, and then what `foreignProperties` gives. Classes
 * that extend it find their private fields on the proxy itself.
 */
export class ForeignObject {
  constructor() {
    const proxy = new Proxy(this, handler)
    proxies.set(this, proxy)
    // biome-ignore lint/correctness/noConstructorReturn: the proxy takes the place of the object
    return proxy
  }
}

const proxies = new WeakMap<ForeignObject, ForeignObject>()

const propertiesOf = (target: ForeignObject): ForeignProperties => (proxies.get(target) as Foreign)[foreignProperties]()

const isOwn = (target: ForeignObject, name: string | symbol): name is symbol =>
  typeof name === 'symbol' || name in target

const handler: ProxyHandler<ForeignObject> = {
  get: (target, name, receiver) =>
    isOwn(target, name) ? Reflect.get(target, name, receiver) : propertiesOf(target).read(name as string),
  set: (target, name, value) => !isOwn(target, name) && propertiesOf(target).write(name as string, value),
  has: (target, name) => isOwn(target, name) || propertiesOf(target).read(name as string) !== undefined,
  deleteProperty: (target, name) => !isOwn(target, name) && propertiesOf(target).remove(name as string),
  ownKeys: (target) => propertiesOf(target).names(),
  getOwnPropertyDescriptor: (target, name) => {
    if (typeof name === 'symbol') return undefined
    const properties = propertiesOf(target)
    if (!properties.names().includes(name)) return undefined
    return { value: properties.read(name), writable: true, enumerable: true, configurable: true }
  },
  defineProperty: () => false,
  setPrototypeOf: () => false,
  preventExtensions: () => false,
}
