import type { PortalWorkflow } from '#features/portal/access/portal.ts'
import {
  type AccessRequest,
  type AccessWorkflow,
  type EndedAccess,
  endedAccess,
  type GivenBackAccess,
  type GroupAccess,
  type OwnAccess,
  type TimedAccess,
  timedAccess,
} from '#features/portal/contract/main-access.ts'
import { endOffer, labelsOf, type MainParts, requireOwnLogin, userOf } from '#features/portal/front/main-parts.ts'
import { isUser } from '#identity/identity.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import { hasEnded, type Run } from '#workflows/record/run.ts'

export const accessOperations = {
  listAccess: {
    summary: 'What the caller has and had, since when, until when, and through which request',
    answer: 'OwnAccess',
    handle: listAccess,
  },
  giveBackAccess: {
    summary: 'Ends access before its expiry',
    answers: { '202': { description: 'A run removes the access', schema: 'GivenBackAccess' } },
    failures: { '409': 'It has already ended' },
    handle: giveBackAccess,
  },
} satisfies OperationTable<MainParts>

/** The latest runs about the caller that are searched for the origin of access. */
const maxRuns = 500
const maxEnded = 50
const atOnce = 8

/** What the caller has, had, and how the caller got it. */
async function listAccess(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const login = await requireOwnLogin(parts, exchange)
  const { grants } = parts.host
  const [active, revoked, history] = await Promise.all([
    grants.ofSubject(login),
    grants.endedOf(login),
    readHistory(parts, exchange),
  ])
  const own = await ownGrants(active, history, parts, exchange)
  const access = own
    .map((grant) => timedView(grant, history))
    .sort((one, other) => (one.expires < other.expires ? -1 : 1))
  const ended = await ownGrants(latestOfEach(revoked, own).slice(0, maxEnded), history, parts, exchange)
  return answer({
    access,
    groups: await listGroups(login, own, history, parts, exchange),
    ended: (await inParallel(ended, atOnce, (grant) => endedView(grant, history, parts))).sort((one, other) =>
      one.ended > other.ended ? -1 : 1,
    ),
  } satisfies OwnAccess)
}

/** Revokes a grant now. Its run removes the access. */
async function giveBackAccess(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  const { subject, request } = exchange
  const login = await requireOwnLogin(parts, exchange)
  const grant = await parts.host.grants.get(id)
  const run = grant?.run === undefined ? undefined : await parts.host.runs.get(grant.run)
  const isOwn = grant?.subject.toLowerCase() === login.toLowerCase() && isAbout(run, parts, exchange)
  if (grant === undefined || !isOwn) {
    throw notFound(`no grant "${id.slice(0, 80)}" of "${subject.uid}"`, 'There is no such access.')
  }
  const { uid, identity } = subject
  const removal = await parts.host.grants.giveBack(grant, { login: uid, identity, requestId: request.id })
  return answer({ request: removal } satisfies GivenBackAccess, 202)
}

const isAbout = (run: Run | undefined, parts: MainParts, { subject }: Exchange): boolean =>
  isUser(run?.head.who.subject, userOf(parts, subject))

/** What is known about the caller's requests. */
interface History {
  /** The run, if it is about the caller. */
  run(id: string | undefined): Run | undefined
  requestOf(run: Run): AccessRequest
  /** What the caller can request again. */
  workflowOf(run: Run): AccessWorkflow | undefined
  /** An open request for the same workflow. */
  pendingOf(run: Run): string | undefined
}

async function readHistory(parts: MainParts, { subject }: Exchange): Promise<History> {
  const { host, visibility } = parts
  const [{ runs }, listed] = await Promise.all([
    host.runs.list({ about: userOf(parts, subject), limit: maxRuns }),
    visibility.workflows(subject),
  ])
  const byId = new Map(runs.map((run) => [run.head.id, run]))
  const open = new Map(runs.filter(({ state }) => !hasEnded(state)).map((run) => [run.head.workflow, run.head.id]))
  const byName = new Map(listed.map((workflow) => [workflow.name, workflow]))
  const label = await labelsOf(
    runs.map(({ head }) => head),
    parts,
  )
  return {
    run: (id) => (id === undefined ? undefined : byId.get(id)),
    requestOf: (run) => ({ id: run.head.id, label: label(run.head) }),
    workflowOf: ({ head: { workflow: name } }) => workflowView(byName.get(name), host.clock()),
    pendingOf: ({ head: { workflow: name } }) => open.get(name),
  }
}

/** The rows of a dynamic workflow share one name, so none of them is known to grant the same access. */
const workflowView = (workflow: PortalWorkflow | undefined, now: Date): AccessWorkflow | undefined =>
  workflow === undefined || workflow.dynamic !== undefined
    ? undefined
    : { name: workflow.name, label: workflow.label, ...endOffer(workflow, now) }

/** Leaves out grants of runs about another user, whose login at the target is the caller's here. */
async function ownGrants(
  grants: readonly Grant[],
  history: History,
  parts: MainParts,
  exchange: Exchange,
): Promise<readonly Grant[]> {
  const isOwn = await inParallel(grants, atOnce, async ({ run: id }) => {
    if (id === undefined || history.run(id) !== undefined) return true
    const run = await parts.host.runs.get(id)
    return run?.head.who.subject === undefined || isAbout(run, parts, exchange)
  })
  return grants.filter((_, i) => isOwn[i])
}

const accessKey = ({ target, kind, name }: Grant): string => JSON.stringify([target, kind, name.toLowerCase()])

/** Access that the caller has again has not ended. */
function latestOfEach(revoked: readonly Grant[], active: readonly Grant[]): readonly Grant[] {
  const seen = new Set(active.map(accessKey))
  return revoked.filter((grant) => {
    const key = accessKey(grant)
    return !seen.has(key) && seen.add(key)
  })
}

function originOf(run: Run | undefined, history: History): Pick<TimedAccess, 'request' | 'workflow' | 'pending'> {
  if (run === undefined) return {}
  const [workflow, pending] = [history.workflowOf(run), history.pendingOf(run)]
  return {
    request: history.requestOf(run),
    ...(workflow === undefined ? {} : { workflow }),
    ...(pending === undefined ? {} : { pending }),
  }
}

function timedView(grant: Grant, history: History): TimedAccess {
  const run = history.run(grant.run)
  return wireForm(timedAccess, { ...grant, ...originOf(run, history), mayGiveBack: run !== undefined })
}

async function endedView(grant: Grant, history: History, { host }: MainParts): Promise<EndedAccess> {
  const removal = grant.removal === undefined ? undefined : await host.runs.get(grant.removal)
  return wireForm(endedAccess, {
    ...grant,
    ended: grant.ended ?? grant.expires,
    ...originOf(history.run(grant.run), history),
    removal: removal?.state,
  })
}

/** A group that a grant names is listed with the grant. */
async function listGroups(
  login: string,
  grants: readonly Grant[],
  history: History,
  { host, people }: MainParts,
  { subject }: Exchange,
): Promise<readonly GroupAccess[]> {
  if ((await people.ownEntry(subject)).kind === 'anothers') return []
  const [names, origins] = await Promise.all([people.groupsOf(subject.dn), host.grants.groupOrigins(login)])
  const timed = new Set(grants.filter(({ kind }) => kind === 'group').map(({ name }) => name.toLowerCase()))
  return names
    .filter((name) => !timed.has(name.toLowerCase()))
    .map((name) => {
      const origin = origins.get(name.toLowerCase())
      const run = history.run(origin?.run)
      if (origin === undefined || run === undefined) return { name }
      const { request, workflow } = originOf(run, history)
      return {
        name,
        since: origin.since.toISOString(),
        ...(request === undefined ? {} : { request }),
        ...(workflow === undefined ? {} : { workflow }),
      }
    })
}
