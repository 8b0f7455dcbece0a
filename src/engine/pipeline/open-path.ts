import { anonymous } from '#engine/pipeline/authenticate.ts'
import type { Step } from '#engine/pipeline/passage.ts'
import type { MatchedUrl } from '#engine/pipeline/routes.ts'

/** Whether everybody may read here: no chain and no rule is asked. */
export function isOpenPath({ url, mount }: MatchedUrl, method: string, path: string): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  return url.openPaths?.some((open) => path.startsWith(mount + open)) === true
}

/** Brings requests for what is no secret straight to the filters, as nobody's and without touching a session. */
export const serveOpenPath =
  (filters: Step): Step =>
  (passage) => {
    const { request, url } = passage
    if (url === undefined || !isOpenPath(url, request.method, request.path)) return undefined
    passage.subject = anonymous
    return filters(passage)
  }
