import * as z from 'zod'
import type { DelegationList, DelegationPeriod } from '#contract/main-requests.ts'
import { readJsonBody } from '#modules/shared/http/json-body.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { DeputyPeriod } from '#sdk/workflow/approvals.ts'
import { approvalUser } from '#sdk/workflow/approvals.ts'
import { answer, emptyAnswer, notFound } from './answer.ts'
import type { MainParts } from './main-parts.ts'
import { typed } from './request-body.ts'

const maxBodyBytes = 16 * 1024
const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text))
export const delegationSchema = z.strictObject({ deputy: typed(256).min(1), starts: time, ends: time })

export const listDelegations =
  ({ host }: MainParts) =>
  async ({ subject }: Exchange): Promise<GatewayResponse> => {
    const user = approvalUser(subject)
    const [periods, represents] = await Promise.all([host.approvals.delegations(user), host.approvals.represents(user)])
    return answer({ delegations: periods.map(periodOf), represents } satisfies DelegationList)
  }

export const addDelegation =
  ({ host }: MainParts) =>
  async ({ request, subject }: Exchange): Promise<GatewayResponse> => {
    const period = await readJsonBody(request, delegationSchema, maxBodyBytes)
    return answer(periodOf(await host.approvals.delegate(approvalUser(subject), period)), 201)
  }

export const endDelegation =
  ({ host }: MainParts) =>
  async ({ subject }: Exchange, id = ''): Promise<GatewayResponse> => {
    if (!/^[\w-]{1,64}$/.test(id)) throw notFound(`no delegation "${id}"`)
    await host.approvals.endDelegation(approvalUser(subject), id)
    return emptyAnswer(204)
  }

const periodOf = ({ id, deputy, starts, ends }: DeputyPeriod): DelegationPeriod => ({
  id,
  deputy,
  starts: starts.toISOString(),
  ends: ends.toISOString(),
})
