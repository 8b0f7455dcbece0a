import type { CallableUrl, Draft } from '#config/draft.ts'
import { FlowWalk, type UnboundWrite } from '#config/flow-walk.ts'
import type { Issues } from '#kernel/issues.ts'
import type { CallerKind } from '#sdk/auth/auth-mechanism.ts'
import type { Catalog } from '#sdk/module/catalog.ts'

/**
 * Warns of tasks that write everything a caller sends: users start workflows by a call with attributes of their own choice,
 * and with groups where the URL, or a task, lets them name any. Each task is reported once, even if several URLs lead to it.
 */
export function checkCallableWorkflows(draft: Draft, catalog: Catalog, issues: Issues): void {
  const reported = new Set<string>()
  for (const url of draft.callables) {
    if (!isForPeople(url, draft)) continue
    const { workflows, groups, path } = url.callable
    for (const workflow of workflows) {
      const walk = new FlowWalk(draft, catalog)
      walk.run({ workflow, gateway: undefined, anyGroup: groups })
      for (const { task, document, what } of walk.unbound()) {
        const key = JSON.stringify([document.at(task.path), what])
        if (reported.has(key)) continue
        reported.add(key)
        const way = `people can call the workflow "${workflow}" (${url.document.at(path)})`
        issues.for(document).warning(task.path, `${way}, and ${problemOf(what)}`)
      }
    }
  }
}

const problemOf = (what: UnboundWrite['what']): string =>
  what === 'code'
    ? 'the code of this task may set any groups and attributes from what they send; list the ones that the provision tasks after it may write in their "attributes" and "groups"'
    : `this task writes all ${what} that they choose; list the ones that it may write in "${what}"`

/** Where the chain does not say who its callers are, callers who may act for themselves count as people. */
function isForPeople({ chain, callable }: CallableUrl, draft: Draft): boolean {
  const kinds = chain === undefined ? ['people' as const] : callersOf(chain, draft, new Set())
  const isOwn = ({ issuer }: { readonly issuer: string }): boolean =>
    draft.issuers.some(({ mount }) => URL.canParse(issuer) && new URL(issuer).pathname === mount)
  if (kinds.some((kind) => kind === 'people' || (typeof kind === 'object' && isOwn(kind)))) return true
  return callable.forThemselves && !kinds.includes('programs')
}

function callersOf(chain: string, draft: Draft, seen: Set<string>): CallerKind[] {
  if (seen.has(chain)) return []
  seen.add(chain)
  return (draft.chains.get(chain)?.config.mechanisms ?? []).flatMap(({ mechanism }) => [
    ...(mechanism.callers === undefined ? [] : [mechanism.callers]),
    ...mechanism.includes.flatMap((included) => callersOf(included, draft, seen)),
  ])
}
