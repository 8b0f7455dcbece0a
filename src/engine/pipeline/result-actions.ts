import { addHeader, type Passage } from '#engine/pipeline/passage.ts'
import type { ResultActions } from '#engine/pipeline/routes.ts'
import type { Subject } from '#identity/subject.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

/**
 * What a ResultGroup does after authentication or authorization: cookies and headers go with the answer, a redirect is
 * the answer. A value that is not there, or that a header cannot carry, is left out.
 */
export function applyResults(actions: ResultActions | undefined, passage: Passage): GatewayResponse | undefined {
  if (actions === undefined) return undefined
  let redirect: string | undefined
  for (const action of actions) {
    if (action.type === 'redirect') {
      redirect = resolve(action.source, action.value, passage.subject)
      continue
    }
    const equals = action.value.indexOf('=')
    const name = equals < 0 ? action.value : action.value.slice(0, equals)
    const value = resolve(action.source, action.value.slice(equals + 1), passage.subject)
    if (value === undefined) continue
    if (action.type === 'header') addHeader(passage, name.toLowerCase(), value)
    else addHeader(passage, 'set-cookie', `${name}=${encodeURIComponent(value)}; Path=/; HttpOnly; SameSite=Lax`)
  }
  if (redirect === undefined) return undefined
  return { status: 302, headers: { location: redirect, 'cache-control': 'no-store' } }
}

function resolve(source: 'static' | 'user', value: string, subject: Subject | undefined): string | undefined {
  const found = source === 'static' ? value : subject?.attributes.first(value)
  return found !== undefined && /^[\t\x20-\x7e\x80-\xff]+$/.test(found) ? found : undefined
}
