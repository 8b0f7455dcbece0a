import type { Catalog } from '#config/configuration/catalog.ts'
import type { ApplicationConfig, InsertConfig, Placed, UrlConfig } from '#config/configuration/configuration.ts'
import type { ParsedObject } from '#config/sources/parse.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { compilePattern, type SafePattern } from '#kernel/text/safe-pattern.ts'

/** An object that is set aside, with its values substituted as far as they can be read. */
interface ClosedObject {
  readonly object: ParsedObject
  readonly value: unknown
  readonly reason: string
  /** Another attempt to create what it needs may succeed. */
  readonly mayPass: boolean
  readonly filters: Catalog['filters']
}

const placedOf = ({ name = '(unnamed)', document }: ParsedObject): Placed => ({
  name,
  namespace: undefined,
  at: document.at(['metadata', 'name']),
})

/**
 * Keeps the addresses of an application that is set aside, without rules and filters: a request must not reach a wider
 * URL of another application instead. Its errors have the format of the API that it would be.
 */
export function closedApplication({ object, value, reason, mayPass, filters }: ClosedObject): ApplicationConfig {
  const urls = specOf(value)['urls']
  return {
    ...placedOf(object),
    azTimeoutMillis: 0,
    cookies: undefined,
    setAside: { reason, mayPass },
    urls: (Array.isArray(urls) ? urls : []).flatMap((url: unknown, i): UrlConfig[] => {
      const { uri, hosts, regex, filterChain } = isJsonObject(url) ? url : {}
      if (typeof uri !== 'string') return []
      // A host that can't be read, such as a value that is not set, could be any.
      const names = [hosts].flat().map((host) => (typeof host === 'string' && host !== '' ? host.toLowerCase() : '*'))
      const pattern = regex === true ? patternOf(uri) : undefined
      if (regex === true && pattern === undefined) return []
      const errors = errorsOf(filterChain, filters)
      return [closedUrl({ at: object.document.at(['spec', 'urls', i]), hosts: names, uri, pattern, errors })]
    }),
  }
}

function errorsOf(filterChain: unknown, filters: Catalog['filters']): UrlConfig['errors'] {
  for (const filter of Array.isArray(filterChain) ? filterChain : []) {
    const { className } = isJsonObject(filter) ? filter : {}
    const errors = typeof className === 'string' ? filters.find(className)?.errors : undefined
    if (errors !== undefined) return errors
  }
  return undefined
}

export const closedUrl = ({
  at,
  hosts,
  uri,
  pattern,
  filters = [],
  errors,
}: Pick<UrlConfig, 'at' | 'hosts' | 'uri' | 'pattern' | 'errors'> &
  Partial<Pick<UrlConfig, 'filters'>>): UrlConfig => ({
  at,
  hosts,
  uri,
  pattern,
  chain: undefined,
  rules: [],
  filters: [],
  errors: errors ?? filters.find(({ answers }) => answers === true)?.errors,
  results: { auSuccess: undefined, auFail: undefined, azSuccess: undefined, azFail: undefined },
})

function patternOf(uri: string): SafePattern | undefined {
  try {
    return compilePattern(uri)
  } catch {
    return undefined
  }
}

/**
 * The part of the directory that an insert would be: a search there fails, as if its system did not answer. Without it,
 * its users would look as if they had been removed. If its suffix can't be read, it could be any part.
 */
export function closedInsert(
  { object, value, reason }: Pick<ClosedObject, 'object' | 'value' | 'reason'>,
  root: Dn,
  roots: readonly Dn[],
): InsertConfig {
  const { suffix, order } = specOf(value)
  const placed = placedOf(object)
  const refuse = (): Promise<never> =>
    Promise.reject(
      new GatewayError('TARGET_UNREACHABLE', `the DirectoryInsert "${placed.name}" is set aside: ${reason}`),
    )
  return {
    ...placed,
    suffix: suffixOf(suffix, root, roots),
    order: typeof order === 'number' ? order : 0,
    mapping: new Map(),
    insert: {
      className: 'set aside',
      create: async () => ({ search: refuse, isMember: refuse, members: refuse, bind: refuse }),
    },
  }
}

function suffixOf(text: unknown, root: Dn, roots: readonly Dn[]): Dn {
  try {
    const suffix = Dn.parse(String(text))
    return roots.some((one) => suffix.isWithin(one)) ? suffix : root
  } catch {
    return root
  }
}

const specOf = (value: unknown): JsonObject => (isJsonObject(value) && isJsonObject(value['spec']) ? value['spec'] : {})
