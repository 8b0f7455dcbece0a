import { queryOptions } from '@tanstack/react-query'
import type {
  ConsolePlanDetails,
  ConsoleReconciliationDetails,
  LinkedAccount,
  RequestedPlan,
  SystemsOfPerson,
  UnlinkedAccount,
} from '#features/portal/contract/console-reconciliations.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type { PlanState } from '#features/reconciliation/contract/plan-words.ts'
import { call } from './call.ts'
import { admin, consolePath } from './console.ts'

export const reconciliationQuery = (name: string) =>
  queryOptions({
    queryKey: ['admin', consolePath(consoleRoutes.getReconciliation, { name })],
    queryFn: ({ signal }) =>
      call<ConsoleReconciliationDetails>(admin(consoleRoutes.getReconciliation, { name }), { signal }),
  })

export const planQuery = (id: string) =>
  queryOptions({
    queryKey: ['admin', consolePath(consoleRoutes.getPlan, { id })],
    queryFn: ({ signal }) => call<ConsolePlanDetails>(admin(consoleRoutes.getPlan, { id }), { signal }),
  })

export const systemsQuery = (id: string) =>
  queryOptions({
    queryKey: ['admin', consolePath(consoleRoutes.listSystemsOfPerson, { id })],
    queryFn: ({ signal }) => call<SystemsOfPerson>(admin(consoleRoutes.listSystemsOfPerson, { id }), { signal }),
  })

export const requestPlan = (name: string): Promise<RequestedPlan> =>
  call(admin(consoleRoutes.requestPlan, { name }), { body: {} })

const changes = {
  apply: consoleRoutes.applyPlan,
  pause: consoleRoutes.pausePlan,
  resume: consoleRoutes.resumePlan,
  stop: consoleRoutes.stopPlan,
} as const
export type PlanChange = keyof typeof changes

/** Changes a plan that is still in the state that the page shows. */
export const changePlan = (
  { id, state }: { readonly id: string; readonly state: PlanState },
  change: PlanChange,
  reason: string,
): Promise<ConsolePlanDetails> => call(admin(changes[change], { id }), { body: { state, reason } })

/** Without a target, the person has no account. */
export const linkAccount = (
  name: string,
  link: { readonly source: string; readonly target?: string | undefined; readonly reason: string },
): Promise<LinkedAccount> => call(admin(consoleRoutes.linkAccount, { name }), { body: link })

export const unlinkAccount = (name: string, source: string, reason: string): Promise<UnlinkedAccount> =>
  call(admin(consoleRoutes.unlinkAccount, { name }), { body: { source, reason } })
