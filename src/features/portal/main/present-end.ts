import type { MainParts } from '#features/portal/front/main-parts.ts'
import { isUser, type UserRef } from '#identity/identity.ts'
import { expiryKey } from '#sdk/workflow/expiry-offer.ts'

/** Access that a user may have through a workflow, with parameters as for `OpenRequests`. */
interface OfferedAccess {
  readonly workflow: string
  readonly subject: { readonly login: string; readonly identity?: UserRef['identity'] }
  readonly parameters: Readonly<Record<string, string>>
  readonly parameterNames: ReadonlySet<string>
}

/** When the first part of the access ends that the user has through the workflow; undefined if the user has none. */
export async function presentEnd(
  { workflow, subject: { login, identity }, parameters, parameterNames }: OfferedAccess,
  { host }: Pick<MainParts, 'host'>,
): Promise<Date | undefined> {
  const grants = await host.grants.through(workflow, login)
  const runs = await host.runs.several(grants.flatMap(({ run }) => run ?? []))
  // Another user may have this login at the target.
  const own = runs.flatMap(({ head: { id, who } }) =>
    identity !== undefined && isUser(who.subject, { login, identity }) ? [id] : [],
  )
  const names = [...parameterNames].filter((name) => name !== expiryKey)
  const given = names.length === 0 ? undefined : await host.runs.parametersOf(own)
  const through = new Set(own.filter((id) => names.every((name) => given?.get(id)?.get(name) === parameters[name])))
  const ends = grants.flatMap(({ run, expires }) => (run !== undefined && through.has(run) ? [Number(expires)] : []))
  return ends.length === 0 ? undefined : new Date(Math.min(...ends))
}
