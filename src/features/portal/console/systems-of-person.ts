import {
  type SystemOfPerson,
  type SystemsOfPerson,
  systemOfPerson,
} from '#features/portal/contract/console-reconciliations.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import type { AccountName } from '#features/reconciliation/plan/difference.ts'
import { accountsFor } from '#features/reconciliation/read/accounts-for.ts'
import { nameOf } from '#features/reconciliation/read/people-source.ts'
import { entryId } from '#identity/directory.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { beforeTimeout } from './before-timeout.ts'
import { entryAttributes } from './entry-attributes.ts'
import { findPerson } from './people.ts'
import { shownRow } from './plan-views.ts'
import { noReconciliation } from './reconciliations.ts'

/** Reconciliations of one answer; an installation has a few. */
const maxSystems = 50
const width = 8
/** The page doesn't wait longer for a system. */
const readMillis = 5_000
const maxGroups = 200

export const systemOfPersonOperations = {
  listSystemsOfPerson: {
    summary: 'What each reconciled system has of the user now, and what the last comparison found',
    answer: 'SystemsOfPerson',
    handle: listSystems,
  },
} satisfies OperationTable<MainParts>

async function listSystems(parts: MainParts, { request }: Exchange, id = ''): Promise<GatewayResponse> {
  readQuery(request.query, [])
  const entry = await findPerson(parts, id)
  const name = { id: entry.id ?? entryId(entry.attributes) ?? entry.identity, login: parts.people.loginIn(entry, '') }
  const { plans, configured } = parts.host.reconciliations
  const [drift, found] = await Promise.all([plans.drift(), plans.differencesOf(name.login)])
  const names = [...configured].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, maxSystems)
  const systems = await inParallel(names, width, async ([reconciliation, { target }]): Promise<SystemOfPerson> => {
    const rows = found.filter((one) => one.reconciliation === reconciliation)
    return wireForm(systemOfPerson, {
      reconciliation,
      target,
      login: name.login,
      ...(await readAccount(parts, reconciliation, name)),
      compared: drift.get(reconciliation)?.report.at,
      differences: rows.map(({ row }) => shownRow(row)),
    })
  })
  return answer({ systems } satisfies SystemsOfPerson)
}

/** What the target has now, without secrets; why not if it can't be read. */
async function readAccount({ host }: MainParts, reconciliation: string, name: AccountName) {
  try {
    return await beforeTimeout(reconciliation, readMillis, async (signal) => {
      const systems = host.reconciliations.systems(reconciliation, signal)
      if (systems === undefined) throw noReconciliation(reconciliation)
      const { accounts, rule, login } = await accountsFor(systems, name)
      const [account, ...others] = accounts
      if (account === undefined) return { login, rule }
      if (others.length > 0) return { login, rule, candidates: accounts.map((one) => nameOf(one, systems.target)) }
      return { login: account.userID, rule, account: accountDocument(account) }
    })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    host.log.warn('a target could not be read for the page of a user', { reconciliation, err: error })
    return { problem: error.publicText }
  }
}

const accountDocument = ({ id, attributes, groups }: User): NonNullable<SystemOfPerson['account']> => ({
  ...(id === undefined ? {} : { id }),
  attributes: entryAttributes(attributes),
  groups: groups.slice(0, maxGroups),
})
