import { GatewayError } from '#kernel/errors.ts'
import { allowMethods } from '#sdk/api/routes.ts'
import type { LoginAttempt } from '#sdk/auth/auth-mechanism.ts'
import { readForm } from '#sdk/http/read-form.ts'

/** The form that a login page posts; undefined for a GET, which shows the page. */
export async function readLoginForm(
  { request, pathInfo }: LoginAttempt,
  maxBytes: number,
): Promise<URLSearchParams | undefined> {
  if (pathInfo !== '') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
  allowMethods(request.method, 'GET', 'HEAD', 'POST')
  return request.method === 'POST' ? await readForm(request, maxBytes) : undefined
}
