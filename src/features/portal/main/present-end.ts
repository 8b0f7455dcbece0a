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
  const names = [...parameterNames].filter((name) => name !== expiryKey)
  const ends: Date[] = []
  for (const { run: id, expires } of await host.grants.through(workflow, login)) {
    const run = id === undefined ? undefined : await host.runs.get(id)
    // Another user may have this login at the target.
    if (run === undefined || identity === undefined || !isUser(run.head.who.subject, { login, identity })) continue
    const given = names.length === 0 ? undefined : (await host.runs.parametersOf([run.head.id])).get(run.head.id)
    if (names.every((name) => given?.get(name) === parameters[name])) ends.push(expires)
  }
  return ends.length === 0 ? undefined : new Date(Math.min(...ends.map(Number)))
}
