import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import * as z from 'zod'
import type { PortalWorkflow } from '#features/portal/access/portal.ts'
import type { SubmitOutcome, SubmitOutcomes, SubmitResults } from '#features/portal/contract/main.ts'
import {
  auditRefusal,
  loginOf,
  type MainParts,
  ownsLogin,
  rightsOf,
  userOf,
} from '#features/portal/front/main-parts.ts'
import { Attributes } from '#identity/attributes.ts'
import { type Identity, isUser, type UserRef } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import type { JsonBounds } from '#kernel/bounded-json.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { jsonBounds, readJsonBody, storableText } from '#sdk/api/json-body.ts'
import { pauseWork } from '#sdk/api/long-request.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { type GatewayResponse, header } from '#sdk/http/http.ts'
import { anothersLoginText, isLoginName } from '#sdk/login/own-login.ts'
import { acceptedLanguage, originalText } from '#sdk/page/configured-texts.ts'
import type { ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'
import { chooseExpiry, expiryKey } from '#sdk/workflow/expiry-offer.ts'
import type { CallKey } from '#sdk/workflow/workflow.ts'
import { isEngineKey, type WorkflowCall, type WorkflowResult } from '#sdk/workflow/workflow.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import { approvalUser } from '#workflows/record/operator.ts'
import { OpenRequests } from './open-requests.ts'
import { presentEnd } from './present-end.ts'

export const submitOperations = {
  submit: {
    summary: 'Submits requests',
    query: { outcomes: '"true": the answer also says what became of decisions' },
    body: 'WorkflowRequests',
    answer: 'SubmitAnswer',
    handle: submitCart,
  },
} satisfies OperationTable<MainParts>

/** How long a line waits for the same line that came just before it. */
const waitMillis = 10_000
const atOnce = 4
/** Runs of a line that are started at once. */
const startsAtOnce = 8
/** Unknown logins of a line that are looked up before it is refused. */
const maxUnknown = 10

/**
 * Each line is its own request; the failure of one does not affect the others. Carts of one user are submitted one
 * after the other, so that the limit of open requests holds and equal requests are found.
 */
function submitCart(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  return parts.carts.run(exchange.subject.identity, () => submitInTurn(parts, exchange))
}

async function submitInTurn(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const lines = await readJsonBody(exchange.request, cartSchema, maxCartBytes, cartBounds)
  await noteLanguage(exchange, parts)
  const open = await OpenRequests.of(userOf(parts, exchange.subject), parts)
  const cart: Cart = { parts, exchange, open, users: new Map(), parameterSets: new Map() }
  const outcomes: Record<string, SubmitOutcome> = Object.create(null)
  for (const line of lines) outcomes[line.uuid] = await submitLine(line, cart)
  const { maxOpenRequests } = parts.settings.given
  if (Object.values(outcomes).every(({ result }) => result === tooManyText(maxOpenRequests))) {
    throw new GatewayError('TOO_MANY_REQUESTS', `"${exchange.subject.uid}" has ${maxOpenRequests} open requests`, {
      publicText: tooManyText(maxOpenRequests),
    })
  }
  // Clients of OpenUnison treat any text but `success`, and any other member, as a failure.
  return answer(exchange.request.query.get('outcomes') === 'true' ? outcomes : resultsOf(outcomes))
}

function resultsOf(outcomes: SubmitOutcomes): SubmitResults {
  const results: Record<string, string> = Object.create(null)
  for (const [uuid, { result }] of Object.entries(outcomes)) results[uuid] = result
  return results
}

const tooManyText = (most: number): string =>
  `You have ${most} open requests, which is the limit. Try again when some of them are decided, or cancel some.`

/** What the lines of one request share. */
interface Cart {
  readonly parts: MainParts
  readonly exchange: Exchange
  readonly open: OpenRequests
  /** Users that were looked up, by login in lower case. */
  readonly users: Map<string, Promise<UserRef | undefined>>
  /** What dynamic workflows offer the caller, by workflow. */
  readonly parameterSets: Map<string, Promise<readonly ParameterSet[]>>
  ownsLogin?: Promise<boolean>
}

async function submitLine(line: CartLine, cart: Cart): Promise<SubmitOutcome> {
  const { parts, exchange } = cart
  const { host } = parts
  const { subject, request } = exchange
  try {
    const ready = await readLine(line, cart)
    await inParallel(ready.subjects, atOnce, (one) => requireLaterEnd(one, ready, cart))
    for (const login of ready.unknown) await createPerson(login, cart)
    const started = await inParallel(ready.subjects, startsAtOnce, (one) => startFor(one, ready, cart))
    await noteUse(ready.workflow, subject, parts)
    return {
      result: 'success',
      ...(ready.preApproval === undefined ? {} : { decision: decisionOf(started.map(({ decision }) => decision)) }),
      ...(started.every(({ wasOpen }) => wasOpen) ? { alreadyOpen: true } : {}),
    }
  } catch (thrown) {
    if (request.signal.aborted) throw thrown
    if (thrown instanceof AnothersLogin) await auditRefusal(parts, exchange, line.name)
    if (thrown instanceof Refused) return { result: thrown.message }
    host.log.error('a request could not be submitted', {
      workflow: line.name,
      by: subject.uid,
      requestId: request.id,
      err: thrown,
    })
    return { result: 'Unable to submit' }
  }
}

/** Refuses an end that is not later than the present one. A repeated line starts nothing, so it is not refused. */
async function requireLaterEnd(
  subject: RequestSubject,
  line: ReadyLine,
  { parts, exchange, open }: Cart,
): Promise<void> {
  const { ends } = line
  if (ends === undefined) return
  const present = await presentEnd({ ...line, subject }, parts)
  if (present === undefined || ends > present) return
  if ((await open.equalTo({ ...line, subject, parameters: withEnd(line) })) !== undefined) return
  if (await parts.host.runs.wasCalled(callKey(subject, line, exchange))) return
  const isOwn = subject.identity === exchange.subject.identity
  const had = isOwn ? `You have this until ${present.toISOString()}` : `${subject.login} has this for longer already`
  throw new Refused(`${had}; choose a later time`)
}

/** Mails about the requests are in the language of the caller who chose no other. The requests don't depend on it. */
async function noteLanguage({ subject, request }: Exchange, parts: MainParts): Promise<void> {
  const language = acceptedLanguage(request)
  // English is also the language of callers who name none.
  if (language === 'en' && !/\ben\b/i.test(header(request, 'accept-language') ?? '')) return
  const { memory } = parts.host.portal
  const user = userOf(parts, subject)
  try {
    if ((await memory.notificationSettings(user))?.language !== undefined) return
    await memory.chooseNotifications(user, { choices: {}, language })
  } catch (err) {
    parts.host.log.warn('the language of a user could not be stored', { err })
  }
}

/** A failure is only logged, since the request itself was submitted. */
async function noteUse(name: string, subject: Subject, parts: MainParts): Promise<void> {
  try {
    await parts.host.portal.memory.noteUse(userOf(parts, subject), { kind: 'workflow', name })
  } catch (err) {
    parts.host.log.warn('a request was not noted as used', { workflow: name, err })
  }
}

/** Creates a user before something is requested for it. */
async function createPerson(login: string, cart: Cart): Promise<void> {
  const { parts, users } = cart
  const { subject, request } = cart.exchange
  await pauseWork(cart.exchange.request)
  users.delete(login.toLowerCase())
  const { jitWorkflow, uidAttributeName } = parts.settings.given
  if (jitWorkflow === undefined) throw new Refused(`Error, user ${login} does not exist;`)
  await parts.host.runs.run({
    head: {
      workflow: jitWorkflow,
      requester: subject.uid,
      who: { requester: subject.identity },
      requestId: request.id,
    },
    user: { userID: login, attributes: Attributes.from({ [uidAttributeName]: [login] }), groups: [] },
    keepGroups: true,
    params: {},
  })
}

async function startFor(
  one: RequestSubject,
  line: ReadyLine,
  cart: Cart,
): Promise<{ readonly decision: Decision; readonly wasOpen: boolean }> {
  const started = await startUnlessOpen(one, line, cart)
  const { wasOpen = false } = started
  if (line.preApproval === undefined) return { decision: 'none', wasOpen }
  return { decision: await decideFirst(started, line.preApproval, cart.exchange, cart.parts), wasOpen }
}

/** A request that is equal to an open one of the same requester is that one. */
async function startUnlessOpen(one: RequestSubject, line: ReadyLine, cart: Cart): Promise<StartedRun> {
  const { exchange, parts, open } = cart
  await pauseWork(cart.exchange.request)
  const { workflow, parameterNames } = line
  const wanted = { workflow, subject: one, parameters: withEnd(line), parameterNames }
  const equal = await open.equalTo(wanted)
  if (equal !== undefined) return { result: { id: equal, status: 'accepted', changes: 0 }, isNew: false, wasOpen: true }
  if (open.isFull) throw new Refused(tooManyText(parts.settings.given.maxOpenRequests))
  const release = open.reserve()
  try {
    const started = await startOnce(callFor(one, line, exchange, parts), callKey(one, line, exchange), parts)
    if (started.isNew && started.result.status !== 'completed') open.add(started.result.id, wanted)
    return started
  } finally {
    release()
  }
}

function callFor(one: RequestSubject, line: ReadyLine, exchange: Exchange, parts: MainParts): WorkflowCall {
  const { subject, request } = exchange
  const { login, identity } = one
  return {
    head: {
      workflow: line.workflow,
      requester: subject.uid,
      who: { requester: subject.identity, subject: identity },
      requestId: request.id,
      reason: line.reason === '' ? undefined : line.reason,
    },
    user: {
      userID: login,
      attributes: Attributes.from({ [parts.settings.given.uidAttributeName]: [login] }),
      groups: [],
    },
    keepGroups: true,
    params: withEnd(line),
    // To decide the first approval, it must be open when the call returns.
    asynchronous: line.preApproval === undefined,
    kept: true,
  }
}

/** The expiry date that the requester chose overrides a parameter of the same name. */
const withEnd = ({ parameters, ends }: ReadyLine): WorkflowCall['params'] =>
  ends === undefined ? parameters : { ...parameters, [expiryKey]: ends.toISOString() }

function callKey(
  { login, identity }: RequestSubject,
  line: ReadyLine,
  { application, mount, subject }: Exchange,
): CallKey {
  const sha256 = (value: unknown): string => hash('sha256', JSON.stringify(value), 'base64url')
  const { workflow, reason, preApproval } = line
  return {
    scope: sha256(['main', application, mount, subject.identity]),
    key: `${line.uuid} ${sha256(identity ?? login.toLowerCase())}`,
    bodyHash: sha256([workflow, reason, Object.entries(withEnd(line)).sort(), preApproval ?? null]),
  }
}

/** A repeated line starts nothing. */
async function startOnce(call: WorkflowCall, key: CallKey, { host }: MainParts): Promise<StartedRun> {
  const deadline = performance.now() + waitMillis
  for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
    const start = await host.runs.start(call, key)
    if ('result' in start) return { result: start.result, isNew: start.kind === 'started' }
    if (start.kind === 'other-body') throw new Refused('Error, this was submitted before with other content')
    if (performance.now() > deadline) throw new Refused('Error, the same request is being submitted')
    await delay(pause)
  }
}

type Decision = NonNullable<SubmitOutcome['decision']>

interface StartedRun {
  readonly result: WorkflowResult
  /** False if the same line was sent before. */
  readonly isNew: boolean
  /** It is an earlier request that is equal to this one. */
  readonly wasOpen?: true
}

/** The decision about several runs; one that is left to others takes precedence. */
const decisionOf = (decisions: readonly Decision[]): Decision =>
  (['left', 'taken'] as const).find((one) => decisions.includes(one)) ?? 'none'

/**
 * The requester's own decision about the first approval of the run, by the rules of that approval: if requesters may
 * not decide, it stays open for others. Later approvals stay open. A repeated line decides nothing, and returns the
 * earlier decision.
 */
async function decideFirst(
  { result, isNew }: StartedRun,
  { approve, comment }: NonNullable<ReadyLine['preApproval']>,
  { subject, request }: Exchange,
  { host }: MainParts,
): Promise<Decision> {
  const [first] = await host.approvals.ofRun(result.id)
  // A run that waits for other runs of the same user has no approval yet, so the requester cannot decide it now.
  if (first === undefined) return result.status === 'accepted' ? 'left' : 'none'
  if (!isNew || result.status !== 'waiting' || first.state !== 'open') {
    return isUser(first.decision?.by?.identity, approvalUser(subject)) ? 'taken' : 'left'
  }
  try {
    await host.approvals.decide(approvalUser(subject), { approval: first.id, approve, comment, requestId: request.id })
    return 'taken'
  } catch (error) {
    if (!(error instanceof GatewayError) || !error.isRefusal) throw error
    host.log.info('a pre-approval was not taken; the approval stays open', {
      approval: first.id,
      reason: error.message,
    })
    return 'left'
  }
}

/** The error of a line that started nothing. */
class Refused extends Error {}

/** A user for whom something is requested; without an identity if the user has to be created first. */
interface RequestSubject {
  readonly login: string
  readonly identity?: Identity
}

/** A validated line. */
interface ReadyLine {
  readonly uuid: string
  readonly workflow: string
  readonly reason: string
  readonly parameters: ParameterSet
  /** Those that distinguish requests for the workflow. */
  readonly parameterNames: ReadonlySet<string>
  /** When the access expires; undefined if it does not. */
  readonly ends: Date | undefined
  /** With logins as the directory spells them; at least one, each once. */
  readonly subjects: readonly RequestSubject[]
  /** The subjects that have to be created first. */
  readonly unknown: readonly string[]
  readonly preApproval: { readonly approve: boolean; readonly comment: string } | undefined
}

/** The caller requests for themselves, and their login belongs to another user. */
class AnothersLogin extends Refused {}

/** Throws Refused. Only listed workflows of an org that the caller sees can be requested. */
async function readLine(line: CartLine, cart: Cart): Promise<ReadyLine> {
  const { parts } = cart
  const { subject } = cart.exchange
  await pauseWork(cart.exchange.request)
  const workflow = await findWorkflow(line.name, subject, parts)
  const reason = readReason(line.reason ?? '', parts)
  const ends = readEnd(line.expires ?? '', workflow, parts)
  const { delegate, preApprove } = rightsOf(parts.settings, subject)
  if (line.doPreApproval === true && !preApprove) throw new Refused('Unauthorized')
  const own = loginOf(parts, subject)
  const wanted = subjectsOf(line)
  const isNamed = wanted.some((login) => sameLogin(login, own))
  if (wanted.length === 0 || isNamed) cart.ownsLogin ??= ownsLogin(parts, subject)
  const isOwn = (wanted.length === 0 || isNamed) && (await cart.ownsLogin) === true
  if (!isOwn && (wanted.length === 0 || (isNamed && !delegate))) throw new AnothersLogin(anothersLoginText)
  const others = isOwn ? wanted.filter((login) => !sameLogin(login, own)) : wanted
  if (others.length > 0 && !delegate) throw new Refused('Unauthorized')
  const preApproval = readPreApproval(line, workflow)
  const { parameters, parameterNames } = await readParameters(line.encryptedParams ?? '', workflow, cart)
  const found = await findUsers(others, cart)
  const unknown = others.filter((_, i) => found[i] === undefined)
  const known = others.map((login, i): RequestSubject => found[i] ?? { login })
  const subjects = onceEach(isOwn ? [{ login: own, identity: subject.identity }, ...known] : known)
  const { uuid } = line
  const read = { uuid, workflow: workflow.name, reason, parameters, parameterNames, ends, preApproval }
  return { ...read, subjects, unknown }
}

async function findWorkflow(name: string, subject: Subject, { host, visibility }: MainParts): Promise<PortalWorkflow> {
  const listed = host.portal.workflows.find((workflow) => workflow.name === name && workflow.inList)
  if (listed === undefined) throw new Refused('Not Found')
  const sees = (await visibility.workflows(subject)).includes(listed)
  if (!sees) throw new Refused('Unauthorized')
  return listed
}

/** One of a list may be sent in any language; it is stored as configured. */
function readReason(given: string, { settings, host }: MainParts): string {
  const { requireReason, reasonIsList, reasons } = settings.given
  const reason = given.trim()
  if (reason === '' && requireReason) throw new Refused('Reason is required')
  if (reason === '' || !reasonIsList) return reason
  const listed = originalText(reason, reasons, host.texts)
  if (listed === undefined) throw new Refused('Reason is not in the list')
  return listed
}

function readEnd(text: string, { accessEnds }: PortalWorkflow, { host }: MainParts): Date | undefined {
  const chosen = chooseExpiry(text, accessEnds, host.clock())
  if ('refusal' in chosen) throw new Refused(chosen.refusal)
  return chosen.ends
}

/** One login per line, as users type them; blank lines and repetitions are ignored. */
function subjectsOf({ subjects }: CartLine): string[] {
  const typed = (subjects ?? []).map((login) => login.trim()).filter((login) => login !== '')
  return typed.filter((login, i) => typed.findIndex((other) => sameLogin(login, other)) === i)
}

function readPreApproval(
  { doPreApproval, approved, approvalReason }: CartLine,
  { commentRequired }: PortalWorkflow,
): ReadyLine['preApproval'] {
  if (doPreApproval !== true) return undefined
  const comment = (approvalReason ?? '').trim()
  if (comment === '' && commentRequired) throw new Refused('Approval reason is required')
  if (approved === undefined || approved === null) throw new Refused('Approval decision is required')
  return { approve: approved, comment }
}

/** The parameters that were offered to this caller, and still are. */
async function readParameters(
  reference: string,
  { name, dynamic }: PortalWorkflow,
  { parts, exchange: { subject }, parameterSets }: Cart,
): Promise<Pick<ReadyLine, 'parameters' | 'parameterNames'>> {
  if (dynamic === undefined) {
    if (reference === '') return { parameters: {}, parameterNames: new Set([expiryKey]) }
    throw new Refused('Not Found')
  }
  const offered =
    reference === '' ? undefined : await parts.host.portal.memory.offered(userOf(parts, subject), reference)
  if (offered?.workflow !== name) throw new Refused('Not Found')
  const offering = parameterSets.get(name) ?? Promise.resolve(dynamic.parameterSets(subject))
  parameterSets.set(name, offering)
  const sets = await offering
  if (!sets.some((set) => sameParameters(set, offered.parameters))) throw new Refused('Unauthorized')
  if (Object.keys(offered.parameters).some(isEngineKey)) {
    throw new GatewayError('INTERNAL', `the source of "${name}" gives a parameter that steers the engine`)
  }
  return { parameters: offered.parameters, parameterNames: new Set([expiryKey, ...sets.flatMap(Object.keys)]) }
}

function sameParameters(one: ParameterSet, other: ParameterSet): boolean {
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && one[name] === other[name])
  )
}

/** One user may be named by several logins. */
const onceEach = (subjects: readonly RequestSubject[]): RequestSubject[] => [
  ...new Map(subjects.map((one) => [one.identity ?? one.login, one])).values(),
]

/**
 * The users with these logins, each looked up once for a cart; undefined for one that has to be created. Throws
 * Refused with the first logins of users who neither exist nor can be created.
 */
async function findUsers(logins: readonly string[], cart: Cart): Promise<(UserRef | undefined)[]> {
  const { users, parts } = cart
  const { jitWorkflow } = parts.settings.given
  const lost = new Set<string>()
  const found = await inParallel(logins, atOnce, async (login) => {
    if (lost.size >= maxUnknown) return undefined
    const key = login.toLowerCase()
    if (!users.has(key)) await pauseWork(cart.exchange.request)
    const looked = users.get(key) ?? findLogin(login, parts)
    users.set(key, looked)
    const user = await looked
    if (user === undefined && (jitWorkflow === undefined || !isLoginName(login))) lost.add(login)
    return user
  })
  if (lost.size === 0) return found
  const named = logins.filter((login) => lost.has(login))
  throw new Refused(named.map((login) => `Error, user ${login} does not exist;`).join(''))
}

async function findLogin(login: string, { people }: MainParts): Promise<UserRef | undefined> {
  try {
    const entry = await people.byLogin(login)
    return entry && { login: people.loginIn(entry, login), identity: entry.identity }
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'CONFLICT') {
      throw new Refused(`Error, there are several users ${login};`)
    }
    throw error
  }
}

/** Browsers' forms send it as text. */
export const yesOrNo = z
  .union([z.boolean(), z.enum(['true', 'false'])])
  .transform((value) => value === true || value === 'true')

export const maxReason = 2_000
const maxLines = 100
const maxSubjects = 500

const line = z.strictObject({
  uuid: z
    .string()
    .regex(/^[\x21-\x7e]{1,100}$/)
    .describe('Chosen by the caller, or that of the list. Sent again, it starts nothing.')
    .meta({ examples: ['my-first-request'] }),
  name: storableText(256)
    .min(1)
    .describe('The name of the workflow, as in the list.')
    .meta({ examples: ['vault-access'] }),
  reason: storableText(maxReason).nullish().describe('Required where the portal requires a reason.'),
  encryptedParams: z.string().max(200).nullish().describe('That of the row of the list, if it has one.'),
  expires: storableText(64).nullish().describe('When the access expires, ISO 8601, if the workflow lets users choose.'),
  subjects: z
    .array(storableText(256))
    .max(maxSubjects)
    .nullish()
    .describe(
      `Logins of the users whom it is for, at most ${maxSubjects} in all lines together. The caller if absent.`,
    ),
  doPreApproval: yesOrNo.nullish().describe('Whether the caller also decides the first approval.'),
  approved: yesOrNo.nullish().describe('That decision.'),
  approvalReason: storableText(maxReason).nullish().describe('The comment of that decision.'),
})

export const cartSchema = z
  .array(line)
  .min(1)
  .max(maxLines)
  .refine(
    (lines) => lines.reduce((sum, { subjects }) => sum + (subjects?.length ?? 0), 0) <= maxSubjects,
    `has more than ${maxSubjects} subjects in all lines together`,
  )
  .refine((lines) => new Set(lines.map(({ uuid }) => uuid)).size === lines.length, 'has a uuid twice')

type CartLine = z.infer<typeof line>

const maxCartBytes = 1024 * 1024
/** Longer than any real cart, so that a hostile one costs nothing. */
const cartBounds: JsonBounds = { ...jsonBounds, elements: 2 * maxSubjects }
