import { isUtf8 } from 'node:buffer'
import type { Subject } from '#identity/subject.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import type { GatewayRequest } from '#sdk/filter/http.ts'
import { wholeNumber } from '#sdk/module/parameter-types.ts'
import type { Parameter } from '#sdk/module/parameters.ts'
import type { PluginRequest, PluginSubject } from '#sdk/plugin/plugin-types.ts'

/** How much of a request a plug-in is given. */
export interface RequestShare {
  /** 0: the body is not read. */
  readonly maxBodyBytes: number
  /** Headers that are not shown, in lower case. */
  readonly withheld: ReadonlySet<string>
}

/** The row of modules whose plug-ins are given requests. */
export const maxBodyKilobytes = (fallback: number): Parameter<number> =>
  wholeNumber({
    about: 'Maximum size of a body for the plug-in; a longer one is 413. `0`: the body is not read.',
    fallback,
    min: 0,
    max: 4096,
  })

/** Throws BODY_TOO_LARGE past the share. The body can be read again by what follows. */
export async function plainRequest(request: GatewayRequest, share: RequestShare): Promise<PluginRequest> {
  const { id, method, origin, host, path, remoteAddress } = request
  const body = share.maxBodyBytes === 0 ? undefined : await request.body(share.maxBodyBytes)
  const isText = body !== undefined && isUtf8(body)
  return {
    id,
    method,
    origin,
    host,
    path,
    query: byName(request.query),
    headers: byName(shownHeaders(request, share.withheld)),
    remoteAddress,
    body: isText ? body.toString('utf8') : null,
    bodyBase64: isText || body === undefined ? null : body.toString('base64'),
  }
}

export const plainSubject = ({ dn, uid, attributes, level, chain }: Subject): PluginSubject => ({
  dn: dn.toString(),
  uid,
  attributes: attributes.toObject(),
  level,
  chain,
})

function* shownHeaders(
  { headers }: GatewayRequest,
  withheld: ReadonlySet<string>,
): Iterable<readonly [string, string]> {
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || withheld.has(name.toLowerCase())) continue
    for (const one of typeof value === 'string' ? [value] : value) yield [name.toLowerCase(), one]
  }
}

function byName(pairs: Iterable<readonly [string, string]>): Record<string, string[]> {
  const found: Record<string, string[]> = Object.create(null)
  for (const [name, value] of pairs) {
    if (isForbiddenKey(name)) continue
    const values = found[name]
    if (values === undefined) found[name] = [value]
    else values.push(value)
  }
  return found
}
