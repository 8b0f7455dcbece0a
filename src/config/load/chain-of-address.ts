import type { ParsedObject } from '#config/sources/parse.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'

/**
 * The chain of the URL that serves a path, read from the Applications before they are built, since chains are built
 * first. Undefined if no URL serves it, the URL has no chain, or two URLs that serve it equally have different ones.
 */
export function chainOfAddress(
  objects: readonly ParsedObject[],
  substitute: (text: string) => string,
  address: string,
): string | undefined {
  const path = URL.parse(address, 'https://portal.invalid')?.pathname ?? ''
  const found = objects
    .filter(({ kind, usable }) => kind.kind === 'Application' && usable)
    .flatMap(({ document }) => urlsOf(document.yaml.toValue({ text: substitute, report: () => {} })))
    .flatMap(({ uri, authChain, regex }) =>
      typeof uri === 'string' && regex !== true && isBelow(path, uri) ? [{ uri: bare(uri), chain: authChain }] : [],
    )
  const longest = Math.max(...found.map(({ uri }) => uri.length))
  const chains = new Set(found.filter(({ uri }) => uri.length === longest).map(({ chain }) => chain))
  const [chain] = chains
  return chains.size === 1 && typeof chain === 'string' && chain !== '' ? chain : undefined
}

function urlsOf(value: unknown): JsonObject[] {
  const spec = isJsonObject(value) ? value['spec'] : undefined
  const urls = isJsonObject(spec) ? spec['urls'] : undefined
  return Array.isArray(urls) ? urls.filter(isJsonObject) : []
}

const bare = (uri: string): string => uri.replace(/\/$/, '')

const isBelow = (path: string, uri: string): boolean => `${bare(path)}/`.startsWith(`${bare(uri)}/`)
