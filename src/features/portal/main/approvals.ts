import * as z from 'zod'
import type { AttributeValues } from '#features/portal/contract/main.ts'
import type {
  ApprovalDetails,
  ApprovalList,
  ApprovalSummary,
  BulkResults,
  DecisionList,
  DelegationList,
  DelegationPeriod,
  RequestedValues,
  RequestMessageView,
} from '#features/portal/contract/main-requests.ts'
import { approvalSummary, delegationPeriod, requestMessage } from '#features/portal/contract/main-requests.ts'
import type { PersonNames } from '#features/portal/contract/person-names.ts'
import { labelsOf, type MainParts, shownGroups } from '#features/portal/front/main-parts.ts'
import { isEntryId } from '#features/portal/front/people.ts'
import { approversOf, usersOfItem } from '#features/portal/runs/person-names.ts'
import { decisionView } from '#features/portal/runs/run-administration.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import type { Subject } from '#identity/subject.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { idTime } from '#kernel/ids.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, emptyAnswer, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, storableText } from '#sdk/api/json-body.ts'
import { pauseWork } from '#sdk/api/long-request.ts'
import { readLimit, readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { ChangePreview } from '#sdk/contract/preview.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { isAnonymousLogin } from '#sdk/login/own-login.ts'
import { shownPreview } from '#sdk/workflow/preview.ts'
import { filledLabel } from '#sdk/workflow/workflow-label.ts'
import type { ApprovalView, DeputyPeriod } from '#workflows/approvals/desk-requests.ts'
import type { ApprovalItem, ApprovalPageQuery, RequestMessage } from '#workflows/record/approval.ts'
import { approvalUser } from '#workflows/record/operator.ts'
import { wireHead } from '#workflows/record/wire-head.ts'
import { attributeValues } from './profile.ts'
import { maxReason, yesOrNo } from './submit.ts'

/** The parameters of a list, as its operation describes them. */
export const paging = { after: 'The `next` of the page before', limit: 'How many at most' }

export const approvalOperations = {
  listApprovals: {
    summary: 'The approvals that wait for the caller',
    query: paging,
    answer: 'ApprovalList',
    handle: listApprovals,
  },
  decideApprovals: {
    summary: 'Decides several approvals',
    body: 'BulkVote',
    answer: 'BulkResults',
    handle: decideApprovals,
  },
  getApproval: {
    summary: 'One approval',
    query: { changes: '"true": with what approving it would do' },
    answer: 'ApprovalDetails',
    handle: showApproval,
  },
  decideApproval: {
    summary: 'Decides an approval',
    body: 'ApprovalVote',
    answers: { '200': { description: 'Decided' } },
    failures: { '409': 'It was decided, or has changed' },
    handle: decideApproval,
  },
  handOverApproval: {
    summary: 'Passes an approval that the caller may decide to another user',
    body: 'ApprovalHandover',
    failures: { '409': 'It was decided', '412': 'It has changed' },
    handle: reassignApproval,
  },
  askRequester: {
    summary: 'Asks the requester of an approval that the caller may decide',
    body: 'RequestText',
    failures: { '409': 'It was decided, or the requester registered without signing in' },
    handle: askQuestion,
  },
  listDecisions: {
    summary: 'What the caller decided, the latest first',
    query: paging,
    answer: 'DecisionList',
    handle: listDecisions,
  },
  listDelegations: {
    summary: "The caller's deputies, and for whom the caller may decide",
    answer: 'DelegationList',
    handle: listDelegations,
  },
  addDelegation: {
    summary: 'Appoints a deputy for a period',
    body: 'NewDelegation',
    answers: { '201': { description: 'The period', schema: 'DelegationPeriod' } },
    handle: addDelegation,
  },
  endDelegation: { summary: 'Ends the period of a deputy', handle: endDelegation },
} satisfies OperationTable<MainParts>

const maxBodyBytes = 64 * 1024
const maxAtOnce = 100
const decidedAtOnce = 8
const maxListed = 500

const approvalId = z.string().regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
/** The comment; approvals that need one refuse a decision without it. */
const reason = storableText(maxReason).nullish()
export const voteSchema = z.strictObject({ approved: yesOrNo, reason, version: z.int().min(0).optional() })
export const bulkSchema = z.strictObject({
  approvals: z
    .array(approvalId)
    .min(1)
    .max(maxAtOnce)
    .refine((ids) => new Set(ids).size === ids.length, 'has an approval twice'),
  approved: yesOrNo,
  reason,
})

async function listApprovals(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const { approvals, next } = await parts.host.approvals.list(approvalUser(exchange.subject), readPage(exchange))
  const names = await parts.names(approvals.flatMap(usersOfItem))
  const summary = await summaries(approvals, parts)
  const list: ApprovalList = {
    approvals: approvals.map((one) => summary(one, subjectName(one, names))),
    ...(next === undefined ? {} : { next }),
    names,
  }
  return answer(list)
}

/** What the caller decided, the latest first. */
async function listDecisions(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const { approvals, next } = await parts.host.approvals.decided(approvalUser(exchange.subject), readPage(exchange))
  const users = approvals.flatMap((one) => [...usersOfItem(one), ...approversOf({ ...one, approvers: [] })])
  const names = await parts.names(users)
  const summary = await summaries(approvals, parts)
  const list: DecisionList = {
    decisions: approvals.flatMap((one) => {
      if (one.state === 'open') return []
      return [{ ...summary(one, subjectName(one, names)), status: one.state, decision: decisionView(one.decision) }]
    }),
    ...(next === undefined ? {} : { next }),
    names,
  }
  return answer(list)
}

function readPage({ request }: Exchange): ApprovalPageQuery {
  const query = readQuery(request.query, ['after', 'limit'])
  const [after] = query.after
  return { limit: readLimit(query.limit, maxListed, maxListed), after }
}

/** A registration is about a user whom the directory does not have. */
const subjectName = ({ newAccount, run: { subject: login } }: ApprovalItem, names: PersonNames): string =>
  (newAccount !== true && Object.hasOwn(names, login) ? names[login] : undefined) ?? login

/** Summaries of these approvals, with the labels of their requests. */
async function summaries(items: readonly ApprovalItem[], parts: MainParts) {
  const label = await labelsOf(
    items.map(({ run }) => run),
    parts,
  )
  return (item: ApprovalItem, displayName: string) => summaryOf(item, displayName, label(item.run), parts)
}

function summaryOf(item: ApprovalItem, displayName: string, wfLabel: string, { host }: MainParts): ApprovalSummary {
  const { run } = item
  const workflow = host.portal.workflows.find((one) => one.name === run.workflow)
  return wireForm(approvalSummary, {
    ...wireHead(run),
    ...item,
    workflow: run.id,
    approval: item.id,
    user: run.subject,
    displayName,
    wfStart: idTime(run.id).getTime(),
    approvalStart: item.opened.getTime(),
    wfName: run.workflow,
    wfLabel,
    wfDescription: workflow === undefined ? '' : filledLabel({ ...workflow, label: workflow.description }),
    reason: run.reason ?? '',
    commentRequired: item.commentRequired === true,
  })
}

/** Built member by member, so that approvers see nothing else. */
async function showApproval(parts: MainParts, { request, subject }: Exchange, id = ''): Promise<GatewayResponse> {
  const found = approvalId.safeParse(id).success ? await parts.host.approvals.get(approvalUser(subject), id) : undefined
  if (found === undefined) throw notFound(`no approval "${id}" for "${subject.uid}"`, 'There is no such approval.')
  const [details, changes] = await Promise.all([
    detailsOf(found, subject, parts),
    request.query.get('changes') === 'true' ? changesOf(found, subject, parts) : undefined,
  ])
  return answer(changes === undefined ? details : { ...details, changes })
}

/** A registration, or a user who is gone, is shown as in the request: a user who has the login by now is another user. */
async function detailsOf(view: ApprovalView, subject: Subject, parts: MainParts): Promise<ApprovalDetails> {
  const { settings, people } = parts
  const isRegistration = view.newAccount === true
  const entry = isRegistration ? undefined : await people.byIdentity(view.run.subject, view.run.who.subject)
  const existing = isRegistration ? await existingAccount(view, subject, parts) : undefined
  const displayName = entry?.attributes.first(settings.given.displayNameAttribute) ?? view.run.subject
  const messages = await parts.host.approvals.messagesOf(view.run.id)
  const summary = await summaries([view], parts)
  return {
    ...summary(view, displayName),
    userObj: {
      userID: view.run.subject,
      isNew: entry === undefined && !isEntryId(view.run.who.subject ?? ''),
      groups: shownGroups(parts, entry === undefined ? texts(view.data['groups']) : await people.groupsOf(entry.dn)),
      requestReason: view.run.reason ?? '',
      attribs: entry === undefined ? requested(view, parts) : labelled(entry, parts),
    },
    ...(isRegistration ? { registration: true as const } : {}),
    ...(existing === undefined ? {} : { existing }),
    requestAttributes: parametersOf(view, parts),
    status: view.state,
    approvers: view.approvers.map(({ login }) => login),
    ...(view.onBehalfOf === undefined ? {} : { onBehalfOf: view.onBehalfOf }),
    mayDecide: view.mayDecide,
    version: view.version,
    ...(view.decision === undefined ? {} : { decision: decisionView(view.decision) }),
    messages: messages.map(messageView),
    names: await parts.names([
      ...usersOfItem(view),
      ...approversOf(view),
      ...(view.onBehalfOf === undefined ? [] : [{ login: view.onBehalfOf }]),
      ...messages.map(({ by }) => by),
    ]),
  }
}

/** Looked up now. `checked` is false if the lookup failed, so that it is unknown whether the account exists. */
async function existingAccount(
  { id }: ApprovalView,
  subject: Subject,
  { host }: MainParts,
): Promise<ApprovalDetails['existing']> {
  try {
    const found = await host.approvals.existing(approvalUser(subject), id)
    return found && { checked: true, ...found }
  } catch (err) {
    host.log.warn('whether the account of a registration exists could not be checked', { approval: id, err })
    return { checked: false, login: false, attributes: [] }
  }
}

/** A directory user, by the configured attributes only. */
function labelled({ attributes }: DirectoryEntry, { settings }: MainParts): Record<string, AttributeValues> {
  const shown: Record<string, AttributeValues> = Object.create(null)
  for (const { name, label } of settings.approvalAttributes)
    shown[label] = attributeValues(name, attributes.values(name))
  return shown
}

/** A new user, by all attributes of the request; secrets were left out when the approval was opened. */
function requested(
  { data, run: { workflow } }: ApprovalView,
  { host, translate }: MainParts,
): Record<string, RequestedValues> {
  const shown: Record<string, RequestedValues> = Object.create(null)
  const attributes = data['attributes']
  const fields = (host.forms ?? []).flatMap((form) => (form.workflow === workflow ? form.fields : []))
  for (const [name, given] of Object.entries(isJsonObject(attributes) ? attributes : {})) {
    const values = texts(given)
    const field = fields.find((one) => one.name === name)
    const labels = values.map((value) => {
      const item = field?.items.find((one) => one.value === value)
      return item === undefined ? value : translate(item.name)
    })
    shown[name] = {
      ...attributeValues(name, values),
      ...(field === undefined ? {} : { label: translate(field.label), valueLabels: labels }),
    }
  }
  return shown
}

function parametersOf({ data }: ApprovalView, { settings }: MainParts): Record<string, string> {
  const shown: Record<string, string> = Object.create(null)
  const parameters = isJsonObject(data['parameters']) ? data['parameters'] : {}
  for (const { name, label } of settings.approvalParameters) {
    const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    if (typeof value === 'string') shown[label] = value
  }
  return shown
}

const texts = (value: JsonValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []

async function decideApproval({ host }: MainParts, { request, subject }: Exchange, id = ''): Promise<GatewayResponse> {
  if (!approvalId.safeParse(id).success) throw notFound(`no approval "${id}"`, 'There is no such approval.')
  const { approved, reason: given, version } = await readJsonBody(request, voteSchema, maxBodyBytes)
  await host.approvals.decide(approvalUser(subject), {
    approval: id,
    approve: approved,
    comment: given?.trim() ?? '',
    requestId: request.id,
    version,
  })
  return emptyAnswer(200)
}

export const handoverSchema = z.strictObject({
  to: storableText(256).min(1),
  reason,
  version: z.int().min(0).optional(),
})

/** Passes an approval that the caller may decide to another user. */
async function reassignApproval(
  { host }: MainParts,
  { request, subject }: Exchange,
  id = '',
): Promise<GatewayResponse> {
  if (!approvalId.safeParse(id).success) throw notFound(`no approval "${id}"`, 'There is no such approval.')
  const { to, reason: given, version } = await readJsonBody(request, handoverSchema, maxBodyBytes)
  await host.approvals.reassign(approvalUser(subject), {
    approval: id,
    to: to.trim(),
    comment: given?.trim() ?? '',
    requestId: request.id,
    version,
  })
  return emptyAnswer(204)
}

export const messageSchema = z.strictObject({ text: storableText(maxReason).min(1) })

/** Asks the requester of an approval that the caller may decide. */
async function askQuestion({ host }: MainParts, { request, subject }: Exchange, id = ''): Promise<GatewayResponse> {
  if (!approvalId.safeParse(id).success) throw notFound(`no approval "${id}"`, 'There is no such approval.')
  const { text } = await readJsonBody(request, messageSchema, maxBodyBytes)
  const user = approvalUser(subject)
  const requester = (await host.approvals.get(user, id))?.run.requester
  if (requester !== undefined && isAnonymousLogin(requester)) {
    throw new GatewayError('CONFLICT', `the requester of approval ${id} has no login`, {
      publicText: 'The requester registered without signing in, and cannot answer.',
    })
  }
  await host.approvals.ask(user, { approval: id, text, requestId: request.id })
  return emptyAnswer(204)
}

export const messageView = ({ by, ...message }: RequestMessage): RequestMessageView =>
  wireForm(requestMessage, { ...message, by: by.login })

/** Decides each one separately: one that another user has decided does not stop the others. */
async function decideApprovals({ host }: MainParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const { approvals, approved, reason: given } = await readJsonBody(request, bulkSchema, maxBodyBytes)
  const comment = given?.trim() ?? ''
  const user = approvalUser(subject)
  const decide = async (approval: string): Promise<BulkResults['results'][string]> => {
    try {
      await host.approvals.decide(user, { approval, approve: approved, comment, requestId: request.id })
      return { status: 200, text: 'success' }
    } catch (thrown) {
      const error = asGatewayError(thrown)
      if (!error.isRefusal) host.log.error('an approval could not be decided', { approval, err: error })
      return { status: error.status, text: error.publicText, code: error.code }
    }
  }
  const decided = await inParallel(approvals, decidedAtOnce, async (one) => {
    await pauseWork(request)
    return [one, await decide(one)] as const
  })
  return answer({ results: Object.fromEntries(decided) } satisfies BulkResults)
}

/** A preview of the changes, for users that may decide; undefined if it is not shown. */
async function changesOf(
  { id, mayDecide }: ApprovalView,
  subject: Subject,
  { host, settings }: MainParts,
): Promise<ChangePreview | undefined> {
  if (!mayDecide || !settings.given.showChanges) return undefined
  const preview = await host.approvals.preview(approvalUser(subject), id)
  return preview && shownPreview(preview)
}

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text))
export const delegationSchema = z.strictObject({ deputy: storableText(256).min(1), starts: time, ends: time })

async function listDelegations({ host, names }: MainParts, { subject }: Exchange): Promise<GatewayResponse> {
  const user = approvalUser(subject)
  const [periods, represents] = await Promise.all([host.approvals.delegations(user), host.approvals.represents(user)])
  const deputies = periods.map(({ deputy: login, deputyIdentity: identity }) => ({ login, identity }))
  return answer({
    delegations: periods.map(periodOf),
    represents: represents.map(({ login }) => login),
    names: await names([...deputies, ...represents]),
  } satisfies DelegationList)
}

async function addDelegation({ host }: MainParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const period = await readJsonBody(request, delegationSchema, 16 * 1024)
  return answer(periodOf(await host.approvals.delegate(approvalUser(subject), period)), 201)
}

async function endDelegation({ host }: MainParts, { subject }: Exchange, id = ''): Promise<GatewayResponse> {
  if (!/^[\w-]{1,64}$/.test(id)) throw notFound(`no delegation "${id}"`)
  await host.approvals.endDelegation(approvalUser(subject), id)
  return emptyAnswer(204)
}

const periodOf = (period: DeputyPeriod): DelegationPeriod => wireForm(delegationPeriod, period)
