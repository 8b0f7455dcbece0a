import { setTimeout as delay } from 'node:timers/promises'
import type { RowState } from '#features/reconciliation/contract/plan-words.ts'
import type { AccountName } from '#features/reconciliation/plan/difference.ts'
import type { LinkStore } from '#features/reconciliation/store/link-store.ts'
import type {
  Drift,
  Plan,
  PlanRow,
  ReconciliationReport,
  RowQuery,
  StoredLink,
} from '#features/reconciliation/store/plan-record.ts'
import type { ReconciliationStore } from '#features/reconciliation/store/reconciliation-store.ts'
import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'

/** A person who acts on a plan. */
interface PlanOperator {
  /** As the audit shows it. */
  readonly login: string
  readonly identity?: Identity | undefined
  /** The logins and ids that systems may know the operator by, who never decides about an own account. */
  readonly names?: readonly string[]
}

interface Act {
  readonly by: PlanOperator
  readonly reason?: string | undefined
}

/** `isAutomatic` is for what no person requests. */
type PlanRequest = Act & Partial<Pick<Plan, 'isAutomatic' | 'scheduled' | 'people'>>

interface PairOf {
  readonly reconciliation: string
  /** The login of a person, or their id at the source. */
  readonly source: string
  /** The login or the id of an account. Absent: the person has none. */
  readonly target?: string | undefined
}

type LinkRequest = Act &
  PairOf & {
    /** The names that a caller who can read the systems has for them; those of the last plan if absent. */
    readonly stored?: Linked
  }

/** What was stored, and whether rows of the last plan have these names. */
export interface Linked {
  readonly source: string
  readonly target?: string | undefined
  /** The names that no row of the last plan has; they are stored as given. */
  readonly unknown: readonly string[]
}

/** A plan with how many of its rows are in each state. */
export interface PlanProgress {
  readonly plan: Plan
  readonly progress: Readonly<Record<RowState, number>>
}

/** A difference of a person or an account in the last comparison of a reconciliation. */
export interface PersonDifference {
  readonly reconciliation: string
  /** When the systems were compared. */
  readonly at: Date
  readonly row: PlanRow
}

/** How long a request waits for a plan of changed people. */
const changesMillis = 30_000
const pollMillis = 250
const rowsOfPerson = 20
const namedRows = 100

/** The audit entry of what happened to a plan or a link. */
export const reconciliationEntry = (
  {
    reconciliation,
    by,
    reason,
    subject = ownTarget,
  }: Act & { readonly reconciliation: string; readonly subject?: string },
  attribute: 'plan' | 'link',
  value: string,
  time: Date,
  action: AuditEntry['action'] = 'replace',
): AuditEntry => ({
  id: newId(),
  time,
  requestor: by.login,
  subject,
  workflow: { id: '', name: `reconciliation ${reconciliation}` },
  target: ownTarget,
  kind: 'entry',
  action,
  attribute,
  value,
  ...(reason === undefined ? {} : { reason }),
})

interface PlanParts {
  readonly store: ReconciliationStore
  readonly links: LinkStore
  readonly clock: Clock
}

/** What people do with plans and links, and what they see of them. Needs no configuration. Audits every action. */
export class ReconciliationPlans {
  readonly #store: ReconciliationStore
  readonly #links: LinkStore
  readonly #clock: Clock

  constructor({ store, links, clock }: PlanParts) {
    this.#store = store
    this.#links = links
    this.#clock = clock
  }

  /**
   * A running gateway compares the systems within seconds. If they are being compared or a plan is applied, returns that
   * plan. Waits for a plan of changed people, for some time, since those are short.
   */
  async request(
    reconciliation: string,
    { by, reason, isAutomatic = false, scheduled, people }: PlanRequest,
  ): Promise<{ readonly plan: Plan; readonly isNew: boolean }> {
    const plan = { id: newId(), reconciliation, requestedBy: by.login, isAutomatic, reason, scheduled, people }
    // A change is in the audit already, and so is what is done about it.
    if (people !== undefined) return await this.#store.request(plan, [])
    const audit = [this.#entry({ reconciliation, by, reason }, 'plan', `request ${plan.id}`, 'add')]
    for (const end = performance.now() + changesMillis; ; await delay(pollMillis)) {
      const outcome = await this.#store.request(plan, audit)
      if (outcome.isNew || outcome.plan.people === undefined || performance.now() > end) return outcome
    }
  }

  /**
   * Allows the rows of the plan to be applied. Throws NOT_FOUND, CONFLICT unless it waits for that, and ACCESS_DENIED if it
   * changes an account of the operator.
   */
  async approve(id: string, { by, reason }: Act): Promise<Plan> {
    const { reconciliation, state, counts } = await this.#find(id)
    if (await this.changesAccountOf(by.names ?? [], id)) {
      throw new GatewayError('ACCESS_DENIED', `"${by.login}" would apply a plan that changes their own account`, {
        publicText: 'This plan changes your own account. Ask another operator to apply it.',
      })
    }
    if (state === 'planned' && Object.entries(counts.actions).every(([action, n]) => action === 'report' || n === 0)) {
      const publicText = 'The plan has nothing to apply: it only reports.'
      throw new GatewayError('CONFLICT', publicText, { publicText })
    }
    const audit = [this.#entry({ reconciliation, by, reason }, 'plan', `approve ${id}`)]
    return await this.#store.change(id, 'approve', { approval: { by: by.login, identity: by.identity, reason }, audit })
  }

  /** The worker stops after its current rows. Throws NOT_FOUND and CONFLICT. */
  pause(id: string, act: Act): Promise<Plan> {
    return this.#change(id, 'pause', act, 'Paused')
  }

  /** Continues a plan that a person paused, or one that waits for a system, at once. Throws NOT_FOUND and CONFLICT. */
  resume(id: string, act: Act): Promise<Plan> {
    return this.#change(id, 'resume', act)
  }

  /** Ends a plan. Runs that have started continue. Throws NOT_FOUND and CONFLICT. */
  stop(id: string, act: Act): Promise<Plan> {
    return this.#change(id, 'stop', act, 'Stopped')
  }

  /** Whether the plan would still change an account with one of these logins. */
  async changesAccountOf(logins: readonly string[], plan: string): Promise<boolean> {
    const rows = logins.map((login) => this.#store.rows(plan, { login, state: 'open', limit: 1 }))
    return (await Promise.all(rows)).some(({ length }) => length > 0)
  }

  /** The names under which a link is stored: the ids that rows of the last plan have for logins, otherwise as given. */
  async storedNames({ reconciliation, source, target }: PairOf): Promise<Linked> {
    const rows = await this.#rowsOf(reconciliation, target === undefined ? [source] : [source, target])
    const person = findName(rows, source, 'source')
    const account = target === undefined ? undefined : findName(rows, target, 'target')
    const unknown = [
      ...(person === undefined ? [source] : []),
      ...(target !== undefined && account === undefined ? [target] : []),
    ]
    return { source: person ?? source, target: target === undefined ? undefined : (account ?? target), unknown }
  }

  /**
   * Remembers which account a person has. Throws CONFLICT if another person has the account, and ACCESS_DENIED if the last
   * plan has one of the names for the operator.
   */
  async link({ reconciliation, source, target, stored: given, by, reason }: LinkRequest): Promise<Linked> {
    const { unknown, ...stored } = given ?? (await this.storedNames({ reconciliation, source, target }))
    await this.#requireOthers(reconciliation, by, [source, target, stored.source, stored.target])
    const value =
      stored.target === undefined ? `${stored.source} has no account` : `${stored.source} is ${stored.target}`
    const audit = [this.#entry({ reconciliation, by, reason, subject: source }, 'link', value)]
    await this.#links.set({ reconciliation, ...stored, decidedBy: by.login, reason }, audit)
    return { ...stored, unknown }
  }

  /** Forgets the decision about a person, by the name that is stored. False if there is none. Throws ACCESS_DENIED as `link`. */
  async unlink(reconciliation: string, source: string, { by, reason }: Act): Promise<boolean> {
    const [link] = await this.#links.ofSources(reconciliation, [source])
    await this.#requireOthers(reconciliation, by, [source, link?.target])
    const audit = [this.#entry({ reconciliation, by, reason, subject: source }, 'link', source, 'delete')]
    return await this.#links.remove(reconciliation, source, audit)
  }

  async get(id: string): Promise<PlanProgress | undefined> {
    const plan = await this.#store.get(id)
    return plan && { plan, progress: await this.#store.progress(id) }
  }

  /** Latest first, at most 500 before the plan with that id. */
  list(query: Parameters<ReconciliationStore['list']>[0]): Promise<readonly Plan[]> {
    return this.#store.list(query)
  }

  rows(plan: string, query: RowQuery): Promise<readonly PlanRow[]> {
    return this.#store.rows(plan, query)
  }

  /** The last comparison of each reconciliation that was compared. */
  drift(): Promise<ReadonlyMap<string, Drift>> {
    return this.#store.drift()
  }

  /** Latest first, at most 500. */
  trend(reconciliation: string, limit: number): Promise<readonly ReconciliationReport[]> {
    return this.#store.reports(reconciliation, limit)
  }

  /** In the order of the persons' names, at most 500 after that one. */
  links(reconciliation: string, limit: number, after?: string): Promise<readonly StoredLink[]> {
    return this.#links.list(reconciliation, limit, after)
  }

  /** What the last comparison of each reconciliation found about a login. */
  async differencesOf(login: string): Promise<readonly PersonDifference[]> {
    const found: PersonDifference[] = []
    for (const [reconciliation, { report }] of await this.#store.drift()) {
      const rows = await this.#store.rows(report.plan, { login, limit: rowsOfPerson })
      found.push(...rows.map((row) => ({ reconciliation, at: report.at, row })))
    }
    return found
  }

  async #change(id: string, change: 'pause' | 'resume' | 'stop', { by, reason }: Act, did?: string): Promise<Plan> {
    const { reconciliation } = await this.#find(id)
    const why = reason === undefined ? '.' : `: ${reason}`
    const problem = did && `${did} by ${by.login}${why}`
    const audit = [this.#entry({ reconciliation, by, reason }, 'plan', `${change} ${id}`)]
    return await this.#store.change(id, change, { problem, audit })
  }

  async #find(id: string): Promise<Plan> {
    const plan = await this.#store.get(id)
    if (plan !== undefined) return plan
    const publicText = `There is no plan ${id.slice(0, 100)}.`
    throw new GatewayError('NOT_FOUND', publicText, { publicText })
  }

  async #requireOthers(
    reconciliation: string,
    { login, names = [] }: PlanOperator,
    given: readonly (string | undefined)[],
  ): Promise<void> {
    const own = new Set(names.map(folded))
    const rows = await this.#rowsOf(reconciliation, names)
    const named = rows.flatMap(({ difference: { source, target, candidates = [] } }) => [source, target, ...candidates])
    for (const one of named) if (one?.id !== undefined && own.has(folded(one.login))) own.add(folded(one.id))
    if (given.some((name) => name !== undefined && own.has(folded(name)))) throw ownAccount(login)
  }

  /** The rows of the last plan with these logins. */
  async #rowsOf(reconciliation: string, logins: readonly string[]): Promise<readonly PlanRow[]> {
    const last = (await this.#store.drift()).get(reconciliation)?.report.plan
    if (last === undefined) return []
    const rows = await Promise.all(logins.map((login) => this.#store.rows(last, { login, limit: namedRows })))
    return rows.flat()
  }

  #entry(
    act: Parameters<typeof reconciliationEntry>[0],
    attribute: 'plan' | 'link',
    value: string,
    action?: AuditEntry['action'],
  ): AuditEntry {
    return reconciliationEntry(act, attribute, value, this.#clock(), action)
  }
}

const folded = (name: string): string => name.toLowerCase()

/** Why an operator can't decide about a link. */
export const ownAccount = (login: string): GatewayError =>
  new GatewayError('ACCESS_DENIED', `"${login}" would decide about their own account`, {
    publicText: 'You cannot decide about your own account. Ask another operator.',
  })

/** The name as it is stored, of the person or the account that a row has under this login or id. */
function findName(rows: readonly PlanRow[], given: string, side: 'source' | 'target'): string | undefined {
  const names = rows.flatMap(({ difference }): AccountName[] => {
    const { candidates = [] } = difference
    const other = side === 'source' ? difference.target : difference.source
    const own = difference[side]
    // The candidates of a person are accounts, and those of an account are persons.
    const areIts = other !== undefined && (side === 'target' || own === undefined)
    return [...(own === undefined ? [] : [own]), ...(areIts ? candidates : [])]
  })
  const isIt = ({ id, login }: AccountName): boolean => id === given || login.toLowerCase() === given.toLowerCase()
  const found = new Set(names.filter(isIt).map(({ id, login }) => id ?? login))
  const [first] = found
  return found.size === 1 ? first : undefined
}
