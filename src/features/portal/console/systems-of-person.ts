import {
  type SystemOfPerson,
  type SystemsOfPerson,
  systemOfPerson,
} from '#features/portal/contract/console-reconciliations.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { hasLookups } from '#sdk/target/target.ts'
import { entryAttributes } from './entry-attributes.ts'
import { findPerson } from './people.ts'
import { shownRow } from './plan-views.ts'

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
  const login = parts.people.loginIn(await findPerson(parts, id), '')
  const { plans, configured } = parts.host.reconciliations
  const [drift, found] = await Promise.all([plans.drift(), plans.differencesOf(login)])
  const names = [...configured].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, maxSystems)
  const systems = await inParallel(names, width, async ([reconciliation, { target }]): Promise<SystemOfPerson> => {
    const rows = found.filter((one) => one.reconciliation === reconciliation).map(({ row }) => row)
    const account = rows.find(({ difference }) => difference.source?.login.toLowerCase() === login.toLowerCase())
    const known = account?.difference.target?.login ?? login
    return wireForm(systemOfPerson, {
      reconciliation,
      target,
      login: known,
      ...(await readAccount(parts, target, known)),
      compared: drift.get(reconciliation)?.report.at,
      differences: rows.map(shownRow),
    })
  })
  return answer({ systems } satisfies SystemsOfPerson)
}

/** What the target has now, without secrets; why not if it can't be read. */
async function readAccount(
  { host }: MainParts,
  name: string,
  login: string,
): Promise<Pick<SystemOfPerson, 'account' | 'problem'>> {
  let timer: NodeJS.Timeout | undefined
  try {
    const target = host.targets.get(name)
    if (!hasLookups(target)) return { problem: 'The target has no lookups.' }
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new GatewayError('TARGET_TIMEOUT', `no answer of ${name}`)), readMillis)
    })
    const user = await Promise.race([target.lookupUserByLogin(login), timeout])
    return user === undefined ? {} : { account: accountDocument(user) }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    host.log.warn('a target could not be read for the page of a user', { target: name, err: error })
    return { problem: error.publicText }
  } finally {
    clearTimeout(timer)
  }
}

const accountDocument = ({ id, attributes, groups }: User): NonNullable<SystemOfPerson['account']> => ({
  ...(id === undefined ? {} : { id }),
  attributes: entryAttributes(attributes),
  groups: groups.slice(0, maxGroups),
})
